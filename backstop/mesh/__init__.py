"""The mesh's recorder: what each step of a run was made from, kept while the run goes on.

`recorder.MeshPlugin` writes a checkpoint (`backstop.core.checkpoint`) for each model turn, tool
call, input, join and effect, as a `Checkpointed` event; what the step left goes to a store of
payloads, under the digest that the checkpoint names as its output. What cannot be seen from the
outside is declared with `declare.evidence`, `declare.step` and `declare.depends_on`.

A step's id is logical, and the same in every attempt: ``s0/desk/scout#1/lookup`` is the call of
`lookup` that the second turn of agent `scout` below `desk` made in the run's step ``s0``. Inputs
are called ``s0/user``, ``s0/state:KEY``, ``s0/artifact:NAME@VERSION``, ``s0/memory:QUERY``.
`spots.current` tells the effect gate at which step, and on which inputs, a tool is about to run.
"""
