"""The keys of Claude Code records whose strings stand in no entry, each with the reason. SPEC.md lists them.

A key stands for itself at any depth, with dots for the end of a key path; a leading dot means: in the record itself.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_REASON: Mapping[str, str] = {
    "an id, a time, a version or a setting, not words": """
        .uuid .parentUuid .logicalParentUuid .sessionId .session_id .timestamp .timesstamp .requestId .cwd
        .gitBranch .slug .version .entrypoint .promptId .sourceToolAssistantUUID .sourceToolUseID .messageId
        .leafUuid .toolUseID .parentToolUseID .agentId .permissionMode .interruptedMessageId .advisorModel
        .teamName .agentName .attributionSkill .attributionPlugin .attributionAgent .userType .toolDenialKind
        .effort .forkedFrom message.id message.model message.usage message.container message.stop_details
        message.diagnostics message.context_management content.id tool_use_id toolUseID attachment.processId
        attachment.source_uuid attachment.timestamp content.caller compactMetadata .snapshotMessageId
        .microcompactMetadata .classifierMetaLines .imagePasteIds .thinkingMetadata toolUseResult.usage
        type error.headers requestID request_id
        toolUseResult.toolStats
    """,
    "encrypted or encoded bytes": """
        signature source.data content.data file.base64 encrypted_content
    """,
    "a copy of words that stand in the tool call or in another entry": """
        toolUseResult.originalFile toolUseResult.structuredPatch toolUseResult.oldString
        toolUseResult.newString toolUseResult.oldTodos toolUseResult.newTodos toolUseResult.gitDiff
        toolUseResult.questions toolUseResult.prompt toolUseResult.file.content .todos .planContent .lastPrompt
        attachment.content.subject attachment.content.description attachment.content.activeForm
        attachment.displayPath
    """,
    "the mark of a session that this program wrote as a fork": """
        .observationalMemoryFork
    """,
    "a title; kept as the session's name": """
        .aiTitle .agentSetting
    """,
    "the harness's own bookkeeping, repeated with each turn": """
        .snapshot .backup .trackingPath .prUrl .prRepository .worktreeSession .relocatedCwd .hookInfos
        attachment.command attachment.text attachment.style attachment.allowedTools attachment.model .mode
    """,
    "lists of tools and agents that the harness offers": """
        attachment.addedLines attachment.addedNames attachment.addedBlocks attachment.addedTypes
        attachment.removedNames attachment.readdedNames attachment.removedTypes attachment.pendingMcpServers
        attachment.needsAuthMcpServers
    """,
    "what the program sends with every request: its instructions, and what tools there are": """
        attachment.systemPrompt attachment.tools attachment.toolSchemas attachment.contextRendering
    """,
    "a live view of a tool or sub-agent at work; the result, or its own file, has the words": """
        .data
    """,
}

IGNORED_KEYS: Mapping[str, str] = {key: reason for reason, keys in _BY_REASON.items() for key in keys.split()}
