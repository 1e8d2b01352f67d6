"""The tables of the store, in one text for SQLite and PostgreSQL: the first step, which never changes.

Times are milliseconds since 1970 in UTC. Booleans are 0 and 1. JSON is opaque text. Credits are millionths, because a
service may charge fractions, and sums of integers are exact. A phone has the international digits of the request. It is
the same text in opt-outs, limits and the history.
"""

from __future__ import annotations

ENDED = ("done", "cancelled")
"""The states of jobs that can be removed."""

COUNTED = "('sending', 'accepted', 'unknown')"
"""The outcomes of people who got, or may have got, a message: they count for repeats and --at-most."""

CREATE_TABLES = """
CREATE TABLE job (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT UNIQUE,                    -- NULL: a single send
    account TEXT NOT NULL,
    profile TEXT NOT NULL,
    command TEXT NOT NULL,
    is_contact INTEGER NOT NULL,       -- whether its messages count for --at-most
    name TEXT,
    digest BLOB,                       -- of the command, the message and the rows
    settings TEXT NOT NULL,            -- JSON
    state TEXT NOT NULL CHECK (state IN ('importing', 'scheduled', 'active', 'paused', 'cancelled', 'done')),
    stopping TEXT,                     -- the state that another process asks the owner to end in
    due INTEGER,
    ending TEXT NOT NULL DEFAULT '',   -- how its last run ended (JSON)
    owner INTEGER,                     -- the lock of the process that runs it
    machine TEXT NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 1,
    is_resending INTEGER NOT NULL DEFAULT 0,
    request INTEGER NOT NULL DEFAULT 0, -- the number of its last request
    requests INTEGER NOT NULL DEFAULT 0,
    invalid INTEGER NOT NULL DEFAULT 0,
    duplicate INTEGER NOT NULL DEFAULT 0,
    excluded INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    sending INTEGER NOT NULL DEFAULT 0,
    accepted INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    unknown INTEGER NOT NULL DEFAULT 0,
    credits INTEGER NOT NULL DEFAULT 0,
    highest_price INTEGER NOT NULL DEFAULT 0, -- the highest charge for one segment
    created INTEGER NOT NULL,
    begun INTEGER,
    updated INTEGER NOT NULL,
    removed INTEGER,
    is_cleared INTEGER NOT NULL DEFAULT 0 -- whether the rows of a removed job are deleted
);
CREATE UNIQUE INDEX job_by_name ON job (account, name) WHERE name IS NOT NULL AND state <> 'importing';
CREATE INDEX job_owned ON job (owner) WHERE owner IS NOT NULL;
CREATE INDEX job_scheduled ON job (due) WHERE state = 'scheduled';
CREATE INDEX job_removed ON job (is_cleared, removed) WHERE removed IS NOT NULL;
CREATE TABLE content (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    parameters TEXT NOT NULL,          -- what is different in each message (JSON)
    digest BLOB,                       -- of the message; NULL: it does not count for repeats
    cost INTEGER NOT NULL,             -- segments per recipient
    PRIMARY KEY (job, number)
) WITHOUT ROWID;
CREATE TABLE recipient (
    job INTEGER NOT NULL,
    line INTEGER NOT NULL,
    phone TEXT,
    content INTEGER,                   -- NULL: left out, with outcome and reason
    outcome TEXT CHECK (outcome IN ('invalid', 'duplicate', 'excluded')),
    reason TEXT,
    columns TEXT,                      -- the cells of the row (JSON)
    PRIMARY KEY (job, line)
) WITHOUT ROWID;
CREATE UNIQUE INDEX recipient_once ON recipient (job, phone) WHERE content IS NOT NULL;
CREATE INDEX recipient_in_order ON recipient (job, content, line) WHERE content IS NOT NULL;
CREATE TABLE result (
    job INTEGER NOT NULL,
    line INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    content INTEGER NOT NULL,
    phone TEXT,
    time INTEGER NOT NULL,             -- of the intent
    request INTEGER NOT NULL,          -- 0: no request
    outcome TEXT NOT NULL CHECK (outcome IN ('pending', 'sending', 'accepted', 'refused', 'unknown', 'excluded')),
    id TEXT,
    status TEXT,
    credits INTEGER,
    state TEXT,
    error TEXT,
    PRIMARY KEY (job, line, attempt)
) WITHOUT ROWID;
CREATE INDEX result_by_phone ON result (phone, time);
CREATE INDEX result_by_time ON result (time);
CREATE INDEX result_by_id ON result (id) WHERE id IS NOT NULL;
CREATE INDEX result_open ON result (job, attempt, content, line) WHERE outcome IN ('pending', 'sending');
CREATE TABLE usage (
    job INTEGER NOT NULL,
    time INTEGER NOT NULL,             -- the beginning of a quarter of an hour
    country TEXT NOT NULL,             -- empty: not known
    messages INTEGER NOT NULL,         -- that were accepted
    credits INTEGER NOT NULL,
    PRIMARY KEY (job, time, country)
) WITHOUT ROWID;
CREATE TABLE response (
    job INTEGER NOT NULL,
    request INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (job, request)
) WITHOUT ROWID;
CREATE TABLE once (
    account TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('sending', 'done')),
    job INTEGER,                       -- the single send
    owner INTEGER,
    machine TEXT NOT NULL,
    time INTEGER NOT NULL,
    exit_code INTEGER,
    http_status INTEGER,
    body BLOB,
    message TEXT,
    hint TEXT,
    PRIMARY KEY (account, key)
) WITHOUT ROWID;
CREATE INDEX once_by_time ON once (time);
CREATE TABLE optout (
    phone TEXT NOT NULL,
    channel TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (phone, channel)
) WITHOUT ROWID
"""
