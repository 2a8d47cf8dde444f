"""The long-term audit in BigQuery: one table for each ledger, filled by load jobs."""

from backstop.adapters.bigquery.archive import BigQueryArchive
from backstop.adapters.bigquery.service import Pacing, Place

__all__ = ["BigQueryArchive", "Pacing", "Place"]
