import { z } from 'zod';
import type { CachedCaller } from '../../../application/caller.ts';
import { nameOf } from '../../../domain/audit/audit-entry.ts';
import { identifyRequest, type RequestIdentity } from '../../../domain/sessions/idempotent-response.ts';
import { invalidInput } from '../../../domain/shared/failure.ts';
import type { Json } from '../../../domain/shared/json.ts';
import type { RawRequest } from '../route.ts';
import { headerValues } from './header-values.ts';

const HEADER = 'Idempotency-Key';

/** Header documentation of a route with `isRepeatable`. */
export const IDEMPOTENCY_KEY = z.object({
  [HEADER]: z
    .string()
    .regex(/^("[\x20\x21\x23-\x5b\x5d-\x7e]{1,255}"|[\x21\x23-\x5b\x5d-\x7e]{1,255})$/)
    .optional()
    .describe(
      'Identifies this request, 1 to 255 printable characters, with or without quotes. For 24 hours the same client gets the same ' +
        'response for the same body, without another session; another body with the key is rejected with 409',
    ),
});

/** Structured string (RFC 9651 section 3.3.3), or its content alone, as many clients send it. */
const QUOTED = /^"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"$/;
const BARE = /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/;

/**
 * Derives the storage key of the response to a request with an `Idempotency-Key`.
 * @param address of the route.
 * @throws Failure `invalid_input` for an invalid key.
 */
export function answerNameOf(address: string, caller: CachedCaller, body: unknown, request: RawRequest): RequestIdentity | undefined {
  const [value, ...surplus] = headerValues(request, HEADER.toLowerCase());
  if (value === undefined) return undefined;
  const key = surplus.length > 0 ? undefined : (QUOTED.exec(value)?.[1] ?? BARE.exec(value)?.[0]);
  if (key === undefined) throw invalidInput(HEADER, 'one key of 1 to 255 printable characters');
  const { access } = caller;
  // A client that was deleted and created again under the same name is a different client.
  const clientSince = access === undefined || access.isExternal ? '' : `${access.clientSince}`;
  return identifyRequest(`${nameOf(caller)} ${clientSince}`, address, key, body as Json);
}
