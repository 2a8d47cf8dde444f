"""What Backstop knows about ADK; shared by the recorder and the harness."""
