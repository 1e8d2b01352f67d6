"""What a person sees, drawn by hand."""

from __future__ import annotations

from textwrap import dedent

from msgctl import operations
from output.support import FIRST, SECOND, answer, clicks, dispatch, printed, state, statistics


def picture(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_an_sms_dispatch_in_a_pipe() -> None:
    assert printed(lambda printer: printer.answer(dispatch())) == picture("""
        id 8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c   status 1

        phone         status    credits  id                                    sms
        573001234567  sent      1        0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10  Hola Ana, tu pedido sale hoy.
        573001230002  rejected  0        5c1e2d3f-4a5b-4c6d-8e7f-901a2b3c4d5e  Hola Luis, tu pedido sale hoy.
        """)


def test_an_sms_dispatch_at_80_columns_has_the_text_under_its_row() -> None:
    assert printed(lambda printer: printer.answer(dispatch()), 80) == picture("""
        id 8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c   status 1

        phone         status    credits  id
          sms
        573001234567  sent      1        0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10
          Hola Ana, tu pedido sale hoy.
        573001230002  rejected  0        5c1e2d3f-4a5b-4c6d-8e7f-901a2b3c4d5e
          Hola Luis, tu pedido sale hoy.
        """)


def test_a_text_that_fits_in_a_few_lines_wraps_in_its_column() -> None:
    assert printed(lambda printer: printer.answer(dispatch()), 87) == picture("""
        id 8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c   status 1

        phone         status    credits  id                                    sms
        573001234567  sent      1        0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10  Hola Ana, tu
                                                                               pedido sale hoy.
        573001230002  rejected  0        5c1e2d3f-4a5b-4c6d-8e7f-901a2b3c4d5e  Hola Luis, tu
                                                                               pedido sale hoy.
        """)


def test_an_sms_dispatch_at_40_columns_is_a_listing_with_unbroken_identifiers() -> None:
    assert printed(lambda printer: printer.answer(dispatch()), 40) == picture("""
        id
          8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c
        status  1

        phone    573001234567
        status   sent
        credits  1
        id
          0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10
        sms      Hola Ana, tu pedido sale hoy.

        phone    573001230002
        status   rejected
        credits  0
        id
          5c1e2d3f-4a5b-4c6d-8e7f-901a2b3c4d5e
        sms      Hola Luis, tu pedido sale hoy.
        """)


def test_the_states_of_two_messages() -> None:
    states = [state(FIRST, "delivered"), state(SECOND, "queued")]
    assert printed(lambda printer: printer.answers(states), 80) == picture("""
        id           0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10
        state        delivered
        phone        573001234567
        credits      1
        created      2024-05-01 10:00:00
        sms          Hola
        dispatch_id  8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c

        id           5c1e2d3f-4a5b-4c6d-8e7f-901a2b3c4d5e
        state        queued
        phone        573001234567
        credits      1
        created      2024-05-01 10:00:00
        sms          Hola
        dispatch_id  8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c
        """)


def test_the_state_of_one_message_has_the_state_first() -> None:
    assert printed(lambda printer: printer.answer(state(FIRST, "delivered")), 80) == picture("""
        state        delivered
        phone        573001234567
        credits      1
        created      2024-05-01 10:00:00
        sms          Hola
        dispatch_id  8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c
        id           0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10
        """)


def test_a_balance_says_what_the_number_counts() -> None:
    assert printed(lambda printer: printer.answer(answer(operations.BALANCE, {"status": 250}))) == (
        "status  250 credits\n"
    )
    assert printed(lambda printer: printer.answer(answer(operations.BALANCE, {"status": 1}))) == "status  1 credit\n"


def test_a_verification_code_says_above_when_it_expires() -> None:
    code = answer(
        operations.CALL_2FA,
        {
            "status": "ok",
            "id": "d1",
            "minutes_to_expire": 10,
            "data": [{"id": "c1", "state": "ringing", "credits": 2, "phone": 573001234567, "voice": "Mariana"}],
        },
    )
    assert printed(lambda printer: printer.answer(code), 80) == picture("""
        id d1   status ok   minutes_to_expire 10

        phone         state    credits  id  voice
        573001234567  ringing  2        c1  Mariana
        """)


def test_click_statistics_at_60_columns() -> None:
    stats = statistics(
        clicks("date", "2024-05-03", 41),
        clicks("date", "2024-05-01", 12),
        clicks("country", "US", 12),
        clicks("country", "CO", 80),
        clicks("city", "Medellín", 30, countryIsoCode="CO", region="Antioquia", percent=31.25),
        clicks("city", "Bogotá", 50, countryIsoCode="CO", region="Cundinamarca", percent=52.0833),
    )
    assert printed(lambda printer: printer.answer(stats), 60) == picture("""
        urlShort      https://s.example/spring
        urlLong       https://www.example.com/landing/spring-sale
        clicksNumber  96

        date
        ▄▁█
        2024-05-01 to 2024-05-03
        peak 41 on 2024-05-03
        2024-05-01  ████████████▉                                 12
        2024-05-02                                                 0
        2024-05-03  ████████████████████████████████████████████  41

        country
        CO  ████████████████████████████████████████████████████  80
        US  ███████▊                                              12

        city
        Bogotá, Cundinamarca, CO  ███████████████████████  50  52.1%
        Medellín, Antioquia, CO   █████████████▊           30  31.2%
        """)


def test_hours_are_a_run_with_zero_between() -> None:
    stats = statistics(
        clicks("hour", "22", 4, date="2024-05-01"),
        clicks("hour", "20", 7, date="2024-05-02"),
        clicks("hour", "23", 1, date="2024-05-01"),
    )
    assert printed(lambda printer: printer.answer(stats), 40).split("\n\n")[1] == picture("""
        hour
        ▅▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█
        2024-05-01 22:00 to 2024-05-02 20:00
        peak 7 at 2024-05-02 20:00
        """)


def test_hours_without_their_day_are_hours_of_the_day() -> None:
    stats = statistics(clicks("hour", "9", 5), clicks("hour", "8", 1), clicks("hour", "8", 1))
    assert printed(lambda printer: printer.answer(stats), 40).split("\n\n")[1] == picture("""
        hour
        ▄█
        08:00 to 09:00
        peak 5 at 09:00
        08:00  ████████████                    2
        09:00  ██████████████████████████████  5
        """)


def test_a_terminal_without_block_characters_gets_a_chart_in_ascii() -> None:
    stats = statistics(clicks("date", "2024-05-01", 1), clicks("date", "2024-05-30", 4), clicks("device", "x" * 90, 4))
    output = printed(lambda printer: printer.answer(stats), 50, encoding="ascii").split("\n\n", 1)[1]
    assert output == picture("""
        date
        =____________________________#
        2024-05-01          2024-05-30
        peak 4 on 2024-05-30

        device
        xxxxxxxxxx...xxxxxxxxxx  ######################  4
        """).replace("=", ":")
