"""The file system of an S3 bucket, made as pyarrow's `from_uri` does, but with limits.

`from_uri` takes neither a retry strategy nor a timeout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from rankmill.errors import UsageError
from rankmill.io.stores.urls import Url

# How often a request is sent at most, and how long a connection may take: a store that does not
# answer is an error within seconds.
ATTEMPTS = 4
CONNECT_SECONDS = 3
METADATA_SECONDS = 1
_PARAMETERS = ("region", "scheme", "endpoint_override")


def open_s3(root: Url) -> Any:
    """The file system for a bucket; credentials come from the environment and AWS's own files."""
    from pyarrow import fs

    given = dict(parse_qsl(root.query))
    if given.keys() - set(_PARAMETERS):
        unknown = ", ".join(sorted(given.keys() - set(_PARAMETERS)))
        raise UsageError(
            f"the URL of the bucket {root.host} has the parameters {unknown}; expected "
            f"only {', '.join(_PARAMETERS)}, as in s3://BUCKET/PATH?region=eu-west-1"
        )
    endpoint = given.get("endpoint_override")
    endpoint = endpoint or _first_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    region = given.get("region") or _first_of("AWS_REGION", "AWS_DEFAULT_REGION")
    with _metadata_asked_only_where_it_answers():
        # A store that is no AWS has no regions, but signatures hold one.
        region = region or ("us-east-1" if endpoint else fs.resolve_s3_region(root.host))
        return fs.S3FileSystem(
            region=region,
            endpoint_override=endpoint,
            scheme=given.get("scheme"),
            connect_timeout=CONNECT_SECONDS,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
            # An upload that is cut off before its first bytes then leaves nothing behind.
            allow_delayed_open=True,
        )


def _first_of(*names: str) -> str | None:
    """The value of the first environment variable that is set, or None."""
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


@contextmanager
def _metadata_asked_only_where_it_answers() -> Iterator[None]:
    """Let AWS's library ask the machine's metadata service only if it is needed and answers.

    Off AWS, the library waits for it for 20 seconds, even where all is known without it.
    """
    name = "AWS_EC2_METADATA_DISABLED"
    told = name in os.environ
    if told or (not os.environ.get("AWS_ACCESS_KEY_ID") and _metadata_answers()):
        yield
        return
    os.environ[name] = "true"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _metadata_answers() -> bool:
    import http.client

    told = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or "http://169.254.169.254"
    with suppress(OSError, http.client.HTTPException, ValueError):
        host, port = urlsplit(told).hostname or "", urlsplit(told).port
        with closing(http.client.HTTPConnection(host, port, timeout=METADATA_SECONDS)) as asked:
            asked.request("GET", "/latest/meta-data/")
            asked.getresponse()  # also an answer that refuses
            return True
    return False
