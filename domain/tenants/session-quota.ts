import { Failure } from '../shared/failure.ts';

const MINUTE_MS = 60_000;
/** The width of a bucket is at most this part of the lifetime: a tenant has few buckets, and bytes count less than 2 % too long. */
const BUCKETS_PER_LIFETIME = 64;
/** Seconds after which a refused caller may try again. */
const RETRY_SECONDS = 60;

/** The end, in milliseconds, of the bucket in which the bytes of a session count: its expiry, rounded up to at least a minute. */
export function expiryBucket(createdAt: number, expiresAt: number): number {
  const maxWidth = (expiresAt - createdAt) / BUCKETS_PER_LIFETIME;
  let width = MINUTE_MS;
  while (width * 2 <= maxWidth) width *= 2;
  return Math.ceil(expiresAt / width) * width;
}

/** @param bytes limit for all open sessions of a tenant. */
export function sessionQuotaError(bytes: number): Failure {
  const message =
    `the open sessions of a tenant may have at most ${bytes} bytes in total (QUOTA_SESSION_BYTES); ` +
    'wait until sessions are completed or expire, cancel some, or shorten the lifetime of new ones';
  return new Failure('session_quota_exceeded', { message, retryAfterSeconds: RETRY_SECONDS });
}
