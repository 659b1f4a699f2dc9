"""The measured year, as every program here gets it from the bench: see ../peers.ts."""

from dataclasses import dataclass
from os import environ
from urllib.parse import quote, urlsplit, urlunsplit


@dataclass(frozen=True)
class Year:
    """The validated movements of one exercice of a folder."""

    database_url: str
    schema_id: int
    folder_id: int
    exercice_id: int


def year_of_environment() -> Year:
    """Raises KeyError naming a missing variable, ValueError for an id that is no number."""
    return Year(
        database_url=_with_settings(environ["DATABASE_URL"], environ["SCHEMA_ID"]),
        schema_id=int(environ["SCHEMA_ID"]),
        folder_id=int(environ["FOLDER_ID"]),
        exercice_id=int(environ["EXERCICE_ID"]),
    )


def _with_settings(database_url: str, schema_id: str) -> str:
    """Binds connections to the tenant and gives them the settings with which the service reads."""
    settings = {
        "grandlivre.schema_id": schema_id,
        "search_path": "grandlivre",
        "max_parallel_workers_per_gather": "0",
        "random_page_cost": "1.1",
        "work_mem": "32MB",
    }
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    address = urlsplit(database_url)
    query = "&".join(filter(None, [address.query, f"options={quote(options)}"]))
    return urlunsplit(address._replace(query=query))
