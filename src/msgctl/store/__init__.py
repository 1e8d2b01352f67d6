"""Everything that msgctl remembers, in one database: SQLite or PostgreSQL, with the same tables and statements.

Open it with `store.open_store`. Functions take the open `Store` first. Errors of the database are
StoreNotReachedError (it may work later) and ConfigurationError (``damaged_store``, ``newer_store`` or
``configuration``); their messages never contain a password. Times are integers: milliseconds since 1970 in UTC.
Credits and prices are millionths.

**A job** is one row of ``job``, whose counts change in the same transaction as the rows they count:

1. Import: `jobs.create` (an invisible job), `recipients.add` for 1,000 rows at a time, perhaps `recipients.exclude`,
   then `jobs.publish`; it returns the earlier job if the name is in use. Otherwise `removal.discard`.
2. Send: `owners.take` returns a `batches.OwnedJob`, whose batches store outcomes and the next intents.
   `msgctl.jobs.sending` explains the protocol.
3. `lifecycle` decides what each command may do with the job, and in which state a run leaves it.

Other processes use `jobs.find`, `listed`, `get`, `recipients.with_results`, `owners.ask_to_stop` (again until the job
is not running), `owners.resend` (another attempt, fixed), `results.accepted`, `store_states` and `state_counts`, and
`removal.remove`.

**A result** is a row for each recipient and attempt: ``sending`` is an intent, then ``accepted``, ``refused`` or
``unknown``. No row means pending. A resend adds rows with the next attempt, ``pending`` at first. If it leaves out a
recipient, it deletes that row, so the earlier outcome stays. Reports show the last attempt; the history and limits
count every attempt.

**A single send** is a job without an ID, with one request: `sends.SendRecord.begin`, the request, `end`. With a
``--once`` key, the same two transactions take the key and store the result under it.

**An owner** is a random number with a lock that the system releases when its process ends: a byte of a lock file, or an
advisory lock of the session in PostgreSQL. The lock only avoids take-overs from a process that is alive. The epoch
guarantees safety: a process that was suspended and wakes up finds another epoch, and its intents have expired.

**Removal** marks jobs as removed, so that every view omits them, and deletes rows in slices. For 90 days, names,
digests, numbers and times stay: they protect people from repeats.
"""
