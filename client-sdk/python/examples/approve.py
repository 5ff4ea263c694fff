"""Gives a task to a session's agent and answers its questions: approve.py FOLDER TASK"""

import asyncio
import sys
import uuid

import cairn_client


async def main(folder: str, task: str) -> None:
    async with cairn_client.connect(approvals=True) as cairn:
        await cairn.index_add_root(path=folder)
        session = await cairn.session_create(root=folder)
        run = await cairn.run_start(sessionId=session["sessionId"], turnId=str(uuid.uuid4()), input=task)
        async for record in cairn.follow(run["sessionId"], to_end=True):
            if record["kind"] == "Evt" and record["evt"]["type"] == "approval_required":
                approval = record["evt"]["approval"]
                print(approval["preview"]["summary"], approval["preview"].get("diff") or "", sep="\n")
                answer: cairn_client.types.ApprovalDecision = "once" if input("allow? [y/N] ") == "y" else "deny"
                await cairn.approval_resolve(approvalId=approval["approvalId"], decision=answer)
            if record["kind"] == "Evt" and record["evt"]["type"] == "run_completed":
                print(record["evt"]["result"]["status"])


asyncio.run(main(*sys.argv[1:3]))
