"""What movements refer to, few rows per folder, each serialized once per answer."""

from dataclasses import dataclass

import orjson
from orjson import Fragment
from psycopg import Connection

from movements_sql import ACCOUNTS, JOURNALS, PAYMENTS, SECTIONS, THIRD_PARTIES
from year import Year

JOURNAL_TYPES = {
    "ACH": "Achat",
    "VTE": "Vente",
    "BQ": "Banque",
    "CAISSE": "Caisse",
    "A_EXT": "À extourner",
    "EXT": "Extourne",
    "AN": "À Nouveaux",
    "NFD": "Note de Frais",
    "RBAL": "Reprise Balance",
    "OD": "OD",
    "OD_AUDIT": "OD Audit",
    "OD_PAIE": "OD Paie",
    "OD_LET": "OD Lettrage",
    "OD_DECL_FISCALE": "OD TVA",
    "OD_EXC": "OD Extracomptable",
}

PAYMENT_MODES = {
    "CB": {"name": "Carte Bleue", "code": "CB"},
    "VIRT": {"name": "Virement", "code": "VIR"},
    "ESP": {"name": "Espèce", "code": "ESP"},
    "CHQ": {"name": "Chèque", "code": "CHQ"},
    "PRLV": {"name": "Prélèvement", "code": "PRE"},
    "LCR": {"name": "Lettre de change", "code": "LCR"},
}


@dataclass(frozen=True, slots=True)
class Section:
    code: str
    name: str
    axis_id: int
    axis_code: str
    axis_name: str


@dataclass(frozen=True, slots=True)
class Books:
    """By id. Payments and third parties have None for no id, so that null needs no test."""

    journals: dict[int, Fragment]
    accounts: dict[int, Fragment]
    payments: dict[int | None, Fragment | None]
    third_parties: dict[int | None, Fragment | None]
    sections: dict[int, Section]


def read_books(connection: Connection, year: Year) -> Books:
    folder = [year.folder_id]
    return Books(
        journals={
            id: fragment(
                producerId=str(id),
                customerReferenceCode=code,
                name=name,
                type=JOURNAL_TYPES.get(type, type),
            )
            for id, code, name, type in connection.execute(JOURNALS, folder)
        },
        accounts={
            id: fragment(producerId=str(id), number=number, name=name)
            for id, number, name in connection.execute(ACCOUNTS, folder)
        },
        payments={None: None}
        | {
            id: fragment(producerId=str(id), **PAYMENT_MODES.get(code, PAYMENT_MODES["CHQ"]))
            for id, code in connection.execute(PAYMENTS, folder)
        },
        third_parties={None: None}
        | {
            id: fragment(name=name, code=code)
            for id, name, code in connection.execute(THIRD_PARTIES)
        },
        sections={id: Section(*columns) for id, *columns in connection.execute(SECTIONS, folder)},
    )


def fragment(**members: object) -> Fragment:
    return Fragment(orjson.dumps(members))
