-- a recipient got a message twice
SELECT job, attempt, phone, count(*) FROM arrival
    GROUP BY job, attempt, phone HAVING count(*) > 1

-- a recipient got messages of two jobs with the same name
SELECT name, phone FROM arrival
    JOIN plan ON plan.job = arrival.job WHERE name <> '' GROUP BY name, phone
    HAVING count(DISTINCT arrival.job) > 1

-- a person got the same message from two jobs
SELECT later.* FROM arrival AS later
    JOIN plan ON plan.job = later.job JOIN arrival AS earlier ON earlier.phone = later.phone
    AND earlier.text = later.text AND earlier.job <> later.job
    WHERE again = 0 AND later.attempt = 1 AND later.sent - earlier.sent BETWEEN {life} AND 36000

-- a person got more messages than --at-most
SELECT later.job, later.phone, later.sent FROM arrival AS later
    JOIN plan ON plan.job = later.job WHERE at_most > 0 AND at_most <= (SELECT count(*) FROM arrival AS earlier
        WHERE earlier.phone = later.phone AND earlier.sent < later.sent - ({life}))

-- a resend reached people who were not in its question
SELECT result.job, result.line FROM result
    JOIN result AS earlier ON earlier.job = result.job AND earlier.line = result.line
    AND earlier.attempt = (SELECT max(attempt) FROM result AS before WHERE before.job = result.job
        AND before.line = result.line AND before.attempt < result.attempt)
    JOIN (SELECT job, attempt, min(outcome) AS outcome FROM question GROUP BY job, attempt
        HAVING count(DISTINCT outcome) = 1) AS asked ON asked.job = result.job AND asked.attempt = result.attempt
    WHERE NOT (earlier.outcome = asked.outcome OR asked.outcome = 'unknown'
        AND earlier.outcome IN ('accepted', 'refused'))  -- a late response decided it

-- a resend has more people than its question
SELECT result.job, result.attempt FROM result
    JOIN job ON job.number = result.job WHERE job.id IS NOT NULL AND result.attempt > 1
    GROUP BY result.job, result.attempt
    HAVING count(*) > (SELECT coalesce(max(number), 0) FROM question WHERE question.job = result.job)

-- a recipient of a job that is done has no result
SELECT recipient.job, line FROM recipient
    JOIN job ON job.number = recipient.job WHERE state = 'done' AND content IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM result WHERE result.job = recipient.job AND result.line = recipient.line
        AND result.outcome NOT IN ('pending', 'sending'))

-- a message arrived, and its recipient is not accepted or unknown
SELECT * FROM arrival WHERE NOT EXISTS
    (SELECT 1 FROM result JOIN job ON job.number = result.job WHERE result.phone = arrival.phone
        AND outcome IN ('accepted', 'unknown') AND (arrival.job = 0 AND job.id IS NULL
        OR arrival.job = result.job AND arrival.attempt = result.attempt))

-- a recipient is accepted, and nothing arrived
SELECT job, line, id FROM result WHERE outcome = 'accepted'
    AND id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM arrival WHERE arrival.id = result.id
        AND arrival.phone = result.phone AND (arrival.job = 0
        OR arrival.job = result.job AND arrival.attempt = result.attempt))

-- an accepted message has no ID
SELECT result.job, line FROM result JOIN job ON job.number = result.job
    WHERE outcome = 'accepted' AND result.id IS NULL AND removed IS NULL

-- an intent has no outcome
SELECT job, line FROM result WHERE outcome = 'sending'

-- the totals of a job differ from its rows
SELECT number FROM job WHERE id IS NOT NULL
    AND (accepted, refused, unknown, sending, excluded) <> (SELECT count(*) FILTER (WHERE outcome = 'accepted'),
        count(*) FILTER (WHERE outcome = 'refused'), count(*) FILTER (WHERE outcome = 'unknown'),
        count(*) FILTER (WHERE outcome = 'sending'), count(*) FILTER (WHERE outcome = 'excluded')
    FROM result WHERE job = job.number AND attempt = (SELECT max(attempt) FROM result AS newest
    WHERE newest.job = result.job AND newest.line = result.line))

-- credits differ from the accepted messages
SELECT number, credits FROM job WHERE removed IS NULL AND credits <>
    (SELECT coalesce(sum(result.credits), 0) FROM result WHERE job = number)

-- the usage differs from the results
SELECT number FROM job WHERE removed IS NULL AND
    ((SELECT coalesce(sum(messages), 0) FROM usage WHERE job = number),
        (SELECT coalesce(sum(usage.credits), 0) FROM usage WHERE job = number)) <>
    (SELECT count(*) FILTER (WHERE outcome = 'accepted'), coalesce(sum(result.credits), 0)
        FROM result WHERE job = number)

-- a process sent a message after another one had taken its job over
SELECT arrival.* FROM arrival JOIN event
    ON event.job = arrival.job WHERE what = 'taken' AND CAST(event.phone AS INTEGER) > epoch
    AND sent > time + {life}

-- one bad number cost others their message
SELECT result.job, result.phone FROM result
    JOIN job ON job.number = result.job JOIN plan ON plan.job = result.job
    WHERE job.state = 'done' AND job.removed IS NULL AND result.outcome = 'refused' AND at_most < 0
    AND opens < 0 AND result.phone <> '573000000011' AND result.attempt = (SELECT max(attempt) FROM result AS newest
        WHERE newest.job = result.job AND newest.line = result.line)
    AND NOT EXISTS (SELECT 1 FROM optout WHERE optout.phone = result.phone)

-- a person got a message after the opt-out
SELECT arrival.* FROM arrival JOIN event
    ON event.phone = arrival.phone WHERE what = 'opted out' AND arrival.job > 0 AND sent > time + {life}

-- a job that was cancelled or removed sent a message
SELECT arrival.* FROM arrival JOIN event
    ON event.job = arrival.job WHERE what IN ('cancelled', 'removed') AND sent > time + {life}

-- a job that a person paused sent a message before it was resumed
SELECT arrival.* FROM arrival
    JOIN event AS pause ON pause.job = arrival.job WHERE pause.what = 'paused' AND sent > pause.time + {life}
    AND NOT EXISTS (SELECT 1 FROM event AS resume WHERE resume.what = 'resumed' AND resume.job = arrival.job
        AND resume.time BETWEEN pause.time AND sent)

-- a message was sent outside the window
SELECT arrival.*, opens, closes FROM arrival
    JOIN plan ON plan.job = arrival.job WHERE opens >= 0 AND NOT (second >= opens AND second < closes)

-- a job exceeded its canary
SELECT plan.job, canary FROM plan JOIN arrival ON arrival.job = plan.job
    WHERE canary > 0 AND attempt = 1 AND NOT EXISTS (SELECT 1 FROM event WHERE what = 'continued'
        AND event.job = plan.job AND time <= sent)
    GROUP BY plan.job, canary HAVING count(*) > canary

-- a job exceeded its credits
SELECT plan.job, plan.credits FROM plan JOIN arrival ON arrival.job = plan.job
    WHERE plan.credits >= 0 AND NOT EXISTS (SELECT 1 FROM event WHERE what = 'unlimited' AND event.job = plan.job
        AND time <= sent) GROUP BY plan.job, plan.credits HAVING sum(arrival.credits) > plan.credits

-- a job has ended, and has an owner or a resend
SELECT number FROM job WHERE state IN ('done', 'cancelled')
    AND (owner IS NOT NULL OR is_resending > 0)

-- an import of a dead process remains
SELECT number FROM job WHERE state = 'importing'
    UNION SELECT job FROM recipient WHERE job NOT IN (SELECT number FROM job)
    UNION SELECT job FROM content WHERE job NOT IN (SELECT number FROM job)
    UNION SELECT job FROM result WHERE job NOT IN (SELECT number FROM job)

-- a job was removed before its end
SELECT number FROM job WHERE removed IS NOT NULL
    AND state NOT IN ('done', 'cancelled')

-- a removed job left personal data
SELECT number FROM job WHERE removed IS NOT NULL AND (settings <> '{}'
    OR EXISTS (SELECT 1 FROM recipient WHERE job = number)
    OR EXISTS (SELECT 1 FROM content WHERE job = job.number AND parameters <> '')
    OR EXISTS (SELECT 1 FROM result WHERE job = number AND (id IS NOT NULL OR credits IS NOT NULL)))
