import { z } from 'zod';
import { FAILURE_CODES } from '../../domain/shared/failure.ts';
import { INTERNAL_ERROR } from './failures.ts';
import type { OtherForm, Route } from './route.ts';
import { ProtocolError } from './shapes.ts';

/** RFC 9457 */
const Problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z
      .enum([...FAILURE_CODES, INTERNAL_ERROR])
      .describe('What happened, for programs; see docs/troubleshooting.md'),
    requestId: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: 'Problem' });

const MEANINGS: Readonly<Record<number, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Accepted; not ready yet',
  204: 'Done, without content',
  400: 'The request is not valid',
  401: 'No valid access token',
  403: 'The role or a restriction does not allow it',
  404: 'Not found',
  406: 'No acceptable form',
  409: 'Conflict, also with what `If-Match` expects',
  410: 'No longer available',
  413: 'The body is too large',
  415: 'The body is of another media type, or of another encoding',
  429: 'Too many calls; `Retry-After` says when to come back',
  431: 'The address and the headers are longer than 16 KiB',
  500: 'Something failed here; nothing has changed',
  503: 'Temporarily unavailable; `Retry-After` may say when to come back',
};

export const COMPACT = { type: 'string' as const, description: 'A JWS or JWE in compact form' };

const TAG = {
  description: 'Tells this state of the thing from others, for `If-Match`',
  schema: { type: 'string' as const },
};

export function takesCondition({ edits }: Route): boolean {
  return edits?.id !== undefined;
}

export function answers(route: Route): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, answer]) => {
      if (isOtherForm(answer)) return [status, otherForm(answer)];
      if (typeof answer !== 'string') {
        const description = answer.description ?? meaning(status);
        const asJwt = (route.asJwt ?? route.bodyKind === 'unread') && Number(status) < 300;
        const content = {
          'application/json': { schema: answer },
          ...(asJwt && { 'application/jwt': { schema: COMPACT } }),
        };
        const headers = { ETag: TAG };
        return [status, { description, content, ...(route.edits !== undefined && { headers }) }];
      }
      // A sentence describes either a failure of the usual form or an answer that is not JSON.
      if (Number(status) < 400) return [status, { description: answer }];
      const stale = status === '409' && takesCondition(route) ? `. Or: ${meaning(status)}` : '';
      return [status, failure(route, answer + stale)];
    }),
  );
}

function isOtherForm(answer: Route['responses'][number]): answer is OtherForm {
  return typeof answer === 'object' && 'contentType' in answer;
}

function otherForm({ description, contentType, schema = z.string(), headers = {} }: OtherForm): object {
  const named = Object.entries(headers).map(([name, words]) => [
    name,
    { description: words, schema: { type: 'string' } },
  ]);
  return {
    description,
    content: { [contentType]: { schema } },
    ...(named.length > 0 && { headers: Object.fromEntries(named) }),
  };
}

/** What every route of its kind can answer, whether the table says so or not. */
export function failures(route: Route): Record<string, object> {
  const { access } = route;
  const statuses = [
    400,
    ...(access === 'public' ? [] : [401, 403]),
    ...(route.body === undefined ? [] : [413, 415]),
    ...(route.path.includes(':') ? [404] : []),
    ...(takesCondition(route) ? [409] : []),
    ...(route.rateLimit === undefined ? [] : [429]),
    ...[500, 503],
  ];
  return {
    ...Object.fromEntries(
      statuses.map((status) => [String(status), failure(route, meaning(String(status)))]),
    ),
    // Nobody has looked at such a request who could say more.
    ...(route.query !== undefined && { 431: { description: meaning('431') } }),
  };
}

function failure({ surface, isToldByAccept }: Route, description: string): object {
  const admin = surface === 'admin' || surface === 'document';
  const page = { 'text/html': { schema: { type: 'string' } } };
  if (isToldByAccept)
    return { description, content: { ...page, 'application/json': { schema: ProtocolError } } };
  if (surface === 'page') return { description, content: page };
  return {
    description,
    content: admin
      ? { 'application/problem+json': { schema: Problem } }
      : { 'application/json': { schema: ProtocolError } },
  };
}

function meaning(status: string): string {
  return MEANINGS[Number(status)] ?? `Status ${status}`;
}
