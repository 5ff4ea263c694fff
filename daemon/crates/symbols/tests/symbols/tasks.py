"""def commented(): pass"""
import os

LIMIT = {
    "a": 1,
}


class Task(Base):
    """Docs: class NotThere: pass."""

    kind: str = "task"

    @property
    def name(self):
        # a comment
        text = """
def not_there():
    pass
"""
        return f"{self.first_part}{text!r}"  # the end

    async def run(
        self,
        limit=LIMIT,
    ) -> dict[str, int]:
        total = (
            1 +
          2
        )
        if total:
            return {"x": [
                1]}

        # last comment

    def outer(self):
        value = 1

        def inner():
            return value
        class Local:
            pass
        return inner

    def short(self): return 1

    def continued(self): \
        return 2


def free(a, b=lambda x: x):
    'one line'
if os.name == "nt":
    def windows():
        return 'it\'s'
else:
    WIDTH = 3

	
def last():
    return LIMIT
