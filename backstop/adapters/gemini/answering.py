"""What the client's answer comes to: a response in the framework's form, or why there is none."""

from __future__ import annotations

from google.genai import types

from backstop.core.canon import NotCanonical, canonical
from backstop.ports import ModelSaid, ModelSilent


def said(answer: types.GenerateContentResponse) -> ModelSaid | ModelSilent:
    """The answer's first candidate, if it is a whole one."""
    usage = answer.usage_metadata or types.GenerateContentResponseUsageMetadata()
    tokens_in = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
    tokens_out = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    if why := _refused(answer):
        return ModelSilent(why=why, tokens_in=tokens_in, tokens_out=tokens_out)
    first = (answer.candidates or [types.Candidate()])[0]
    told = {
        "content": first.content,
        "finish_reason": first.finish_reason,
        "usage_metadata": answer.usage_metadata,
        "grounding_metadata": first.grounding_metadata,
        "citation_metadata": first.citation_metadata,
        "avg_logprobs": first.avg_logprobs,
        "model_version": answer.model_version,
    }
    plain = {
        name: value.model_dump(mode="json", exclude_none=True)
        if hasattr(value, "model_dump")
        else value
        for name, value in told.items()
        if value is not None
    }
    try:
        response = canonical(plain).encode()
    except NotCanonical as fault:
        return ModelSilent(
            why=f"its answer has no canonical form: {fault}",
            tokens_in=tokens_in,
            tokens_out=tokens_out,
        )
    return ModelSaid(response=response, tokens_in=tokens_in, tokens_out=tokens_out)


def _refused(answer: types.GenerateContentResponse) -> str:
    """Why the answer is none that a replay could go on with; empty if it is one."""
    if not answer.candidates:
        feedback = answer.prompt_feedback
        reason = None if feedback is None else feedback.block_reason
        return f"it refused to answer ({_name(reason)})" if reason else "it gave no answer at all"
    first = answer.candidates[0]
    if first.finish_reason is types.FinishReason.MAX_TOKENS:
        return "its answer was cut off at the limit of tokens (MAX_TOKENS)"
    if first.finish_reason not in {None, types.FinishReason.STOP}:
        return f"it broke off ({_name(first.finish_reason)})"
    if first.finish_reason is None and (first.content is None or not first.content.parts):
        return "its answer is empty"
    return ""


def _name(reason: object) -> str:
    return ascii(getattr(reason, "value", reason))[1:-1][:60]
