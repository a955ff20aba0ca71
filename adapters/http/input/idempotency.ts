import { z } from 'zod';
import type { RememberedCaller } from '../../../application/caller.ts';
import { nameOf } from '../../../domain/audit/audit-entry.ts';
import { type AnswerName, nameAnswer } from '../../../domain/sessions/kept-answer.ts';
import { invalidInput } from '../../../domain/shared/failure.ts';
import type { Json } from '../../../domain/shared/json.ts';
import type { RawRequest } from '../route.ts';
import { headerValues } from './header-values.ts';

const HEADER = 'Idempotency-Key';

/** For the documentation of a route that `isRepeatable`. */
export const IDEMPOTENCY_KEY = z.object({
  [HEADER]: z
    .string()
    .regex(/^("[\x20\x21\x23-\x5b\x5d-\x7e]{1,255}"|[\x21\x23-\x5b\x5d-\x7e]{1,255})$/)
    .optional()
    .describe(
      'Names this request, 1 to 255 printable characters, with or without quotes. For 24 hours the same client gets the same ' +
        'answer for the same body, without another session; another body under the key is refused with 409',
    ),
});

/** A structured string (RFC 9651 section 3.3.3), or its content alone, as many clients send it. */
const QUOTED = /^"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"$/;
const BARE = /^[\x21\x23-\x5b\x5d-\x7e]{1,255}$/;

/**
 * What the caller calls the answer to its request.
 * @param address of the route.
 * @throws Failure `invalid_input` for a header that is no key.
 */
export function answerNameOf(address: string, caller: RememberedCaller, body: unknown, request: RawRequest): AnswerName | undefined {
  const [value, ...others] = headerValues(request, HEADER.toLowerCase());
  if (value === undefined) return undefined;
  const key = others.length > 0 ? undefined : (QUOTED.exec(value)?.[1] ?? BARE.exec(value)?.[0]);
  if (key === undefined) throw invalidInput(HEADER, 'one key of 1 to 255 printable characters');
  const { access } = caller;
  // A client that was made anew under the same name is another one.
  const since = access === undefined || access.isExternal ? '' : `${access.clientSince}`;
  return nameAnswer(`${nameOf(caller)} ${since}`, address, key, body as Json);
}
