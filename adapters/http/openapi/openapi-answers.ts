import { object, z } from 'zod';
import { FAILURE_CODES } from '../../../domain/shared/failure.ts';
import { INTERNAL_ERROR } from '../output/failures.ts';
import { isForWallets, type OtherForm, type Route } from '../route.ts';
import { DeletedView, ProtocolError } from '../shapes.ts';

/** RFC 9457 */
const Problem = object({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string(),
  code: z.enum([...FAILURE_CODES, INTERNAL_ERROR]).describe('Machine-readable code; docs/reference/errors.md has cause and fix of each'),
  requestId: z.string(),
  errors: z.array(object({ path: z.string(), message: z.string() })).optional(),
}).meta({ id: 'Problem' });

const MEANINGS: Readonly<Record<number, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Accepted; not ready yet',
  204: 'Done, without content',
  400: 'The request is not valid',
  401: 'No valid access token',
  403: 'The role or a restriction does not allow it',
  404: 'Not found',
  406: 'No acceptable media type',
  409: 'Conflict, also with `If-Match`',
  410: 'No longer available',
  413: 'The body is too large',
  415: 'The body is of another media type, or of another encoding',
  429: 'Too many calls; retry after the time in `Retry-After`',
  431: 'The address and the headers are longer than 32 KiB',
  500: 'Internal error; nothing has changed',
  501: 'Not offered',
  503: 'Temporarily unavailable; `Retry-After` may contain the time for a retry',
};

export const COMPACT = { type: 'string' as const, description: 'A JWS or JWE in compact form' };

const HEADERS = {
  ETag: 'Version of the object, for `If-Match`',
  Link: 'With `rel="next"` the address of the next page; absent on the last one',
  Location: 'Redirect address',
  'Retry-After': 'Seconds until a retry, if known',
  'WWW-Authenticate': 'What is wrong with the access token, or how to get one (RFC 6750 section 3, RFC 9449 section 7.1)',
} as const;

function headersOf({ method, edits, query, responses }: Route, status: number) {
  const showsThing = edits !== undefined && responses[status] !== DeletedView;
  const isPage = method === 'get' && query instanceof z.ZodObject && 'cursor' in query.shape;
  const names: (keyof typeof HEADERS)[] = [
    ...(status < 300 && showsThing ? (['ETag'] as const) : []),
    ...(status === 200 && isPage ? (['Link'] as const) : []),
    ...(status === 302 || status === 303 ? (['Location'] as const) : []),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
  ];
  if (names.length === 0) return {};
  const documentation = names.map((name) => [name, { description: HEADERS[name], schema: { type: 'string' as const } }]);
  return { headers: Object.fromEntries(documentation) };
}

export function takesCondition({ edits }: Route): boolean {
  return edits?.id !== undefined;
}

export function responsesOf(route: Route): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, answer]) => {
      if (isOtherForm(answer)) return [status, otherForm(answer)];
      if (typeof answer !== 'string') {
        const description = answer.description ?? meaning(status);
        const asJwt = (route.asJwt ?? route.bodyKind === 'unread') && Number(status) < 300;
        const content = {
          'application/json': { schema: answer },
          ...(asJwt && { 'application/jwt': { schema: COMPACT } }),
          ...((route.browserPage || (Number(status) >= 400 && hasErrorPage(route))) && PAGE),
        };
        return [status, { description, content, ...headersOf(route, Number(status)) }];
      }
      // A sentence describes either a failure of the usual form or a response that is not JSON.
      if (Number(status) < 400) {
        const content = route.surface === 'page' && status === '200' && { content: PAGE };
        return [status, { description: answer, ...content, ...headersOf(route, Number(status)) }];
      }
      const conflictText = status === '409' && takesCondition(route) ? `. Or: ${meaning(status)}` : '';
      return [status, failure(route, Number(status), answer + conflictText)];
    }),
  );
}

function isOtherForm(answer: Route['responses'][number]): answer is OtherForm {
  return typeof answer === 'object' && 'contentType' in answer;
}

function otherForm({ description, contentType, schema = z.string(), headers = {} }: OtherForm): object {
  const documentedHeaders = Object.entries(headers).map(([name, words]) => [name, { description: words, schema: { type: 'string' } }]);
  return {
    description,
    content: Object.fromEntries([contentType].flat().map((type) => [type, { schema }])),
    ...(documentedHeaders.length > 0 && { headers: Object.fromEntries(documentedHeaders) }),
  };
}

/** Failures that every route of its kind can return, even if its table does not list them. */
export function failureResponsesOf(route: Route): Record<string, object> {
  const { access } = route;
  const statuses = [
    400,
    ...(access === 'public' ? [] : [401, 403]),
    ...(route.body === undefined ? [] : [413]),
    // Wallets get the error of a malformed request instead (RFC 6749 section 5.2, OpenID4VCI 1.0 section 8.3.1.2).
    ...(route.body === undefined || route.surface === 'oauth' || route.surface === 'vci' ? [] : [415]),
    ...(route.path.includes(':') ? [404] : []),
    ...(takesCondition(route) ? [409] : []),
    ...(route.rateLimit === undefined ? [] : [429]),
    ...(isForWallets(route) ? [406] : []),
    ...[500, 503],
  ];
  return {
    ...Object.fromEntries(statuses.map((status) => [String(status), failure(route, status, meaning(String(status)))])),
    // Node rejects such a request before a handler could describe the failure.
    ...(route.query !== undefined && { 431: { description: meaning('431') } }),
  };
}

/** Addresses that may be opened in a browser, which then shows errors as a page. */
function hasErrorPage({ method, surface }: Route): boolean {
  return method === 'get' && surface !== 'admin';
}

const PAGE = { 'text/html': { schema: { type: 'string' as const } } };

function failure(route: Route, status: number, description: string): object {
  const { surface, negotiatesErrorFormat } = route;
  const admin = surface === 'admin' || surface === 'document';
  const documentation = { description, ...headersOf(route, status) };
  if (negotiatesErrorFormat) return { ...documentation, content: { ...PAGE, 'application/json': { schema: ProtocolError } } };
  if (surface === 'page') return { ...documentation, content: PAGE };
  const form = admin ? { 'application/problem+json': { schema: Problem } } : { 'application/json': { schema: ProtocolError } };
  return { ...documentation, content: { ...form, ...(hasErrorPage(route) && PAGE) } };
}

function meaning(status: string): string {
  return MEANINGS[Number(status)] ?? `Status ${status}`;
}
