import { EXAMPLE_HANDLE, EXAMPLE_REQUEST_URI } from './oauth/described-parameters.ts';

/**
 * Example values of parameters. They name what the example bodies make; text in angle brackets stands for what a call
 * before answered, or for a proof that a wallet makes. The tests fill that in and execute every operation.
 */
export const ABOUT_EXAMPLES =
  'Examples of all operations fit together. Text in angle brackets, such as `<session>`, stands for what a call before ' +
  `answered, or for a proof that a wallet makes; so does \`${EXAMPLE_HANDLE}\`.`;

/** What `{id}` names, by the path up to it. */
const IDS: Readonly<Record<string, string>> = {
  '/tenant': 'acme',
  '/client': 'shop-backend',
  '/issuer/credentials': 'pid',
  '/verifier/config': 'name-check',
  '/session': '<session>',
  '/key-chain': 'pid-signing',
  '/key': 'diplomas',
  '/trust-list': 'universities',
  '/trust/lists': '<followed list>',
  '/{tenant}/trust-list': 'universities',
  '/{tenant}/crl': '<authority>',
  '/{tenant}/ca': '<authority>',
  '/{tenant}/vct': '<type>',
  '/{tenant}/schema': '<type>',
};

const IN_PATH: Readonly<Record<string, string>> = {
  tenant: 'acme',
  certId: 'signing-2',
  listId: '<status list>',
  versionId: '<version>',
  transactionId: '<transaction>',
  deliveryId: '<delivery>',
  offerId: '<offer>',
  pageId: '<page>',
  requestId: '<request>',
};

/** Of what belongs to a page, by its path. */
const FILES: Readonly<Record<string, string>> = {
  '/docs/{file}': 'swagger-ui.css',
  '/console/{file}': 'icon.svg',
};

/** Of calls whose parameters say what they are about, by what stands behind the tenant. */
const IN_QUERY: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/session': { status: 'active', since: '2026-01-01T00:00:00Z', limit: 20, sort: 'desc' },
  '/session/rates': { period: '7d' },
  '/session/{id}': { response_code: '<response code>' },
  '/session/{id}/statuses': { limit: 20, sort: 'asc' },
  '/session/{id}/events': { token: '<access token>' },
  '/issuer/deferred': { session: '<session>', limit: 20, sort: 'desc' },
  '/certs': { keyId: 'signing', limit: 20, sort: 'asc' },
  '/audit-log': { kind: 'client', since: '2026-01-01T00:00:00Z', limit: 20, sort: 'desc' },
  '/settings': { q: 'database', source: 'environment', limit: 20, sort: 'asc' },
  '/client/{id}/rotate-secret': { graceSeconds: 300 },
  '/trust/forecast': { until: '2027-01-01T00:00:00Z', limit: 20 },
  '/cache': { releases: 'true' },
  '/cache/trust-list': { releases: 'true' },
  '/deferred_credential': { transaction_id: '<transaction>' },
  '/authorize': { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
  '/offer/{pageId}': { lang: 'de' },
  '/interactive-authorization/return': { auth_session: EXAMPLE_HANDLE },
  '/chained-as/authorize': { client_id: 'https://wallet.example', request_uri: EXAMPLE_REQUEST_URI },
  '/chained-as/callback': {
    code: '<code of the provider>',
    state: '<state>',
    iss: '<issuer of the provider>',
  },
};
const OF_LISTS = { limit: 20, sort: 'asc' };
const HEADERS: Readonly<Record<string, string>> = {
  'If-Match': '"the-etag-of-the-answer-before"',
  'Idempotency-Key': 'order-4711',
};

type Parameter = { readonly name: string; readonly in: string; example?: unknown };
type Paths = Readonly<
  Record<string, Readonly<Record<string, { readonly parameters?: readonly Parameter[] }>>>
>;

/** Adds an example to each parameter that has a meaningful one. */
export function addParameterExamples(paths: Paths): void {
  for (const [path, operations] of Object.entries(paths)) {
    for (const { parameters = [] } of Object.values(operations)) {
      for (const parameter of parameters) {
        const example = exampleOf(path, parameter);
        if (example !== undefined) parameter.example = example;
      }
    }
  }
}

function exampleOf(path: string, { name, in: place }: Parameter): unknown {
  if (place === 'header') return HEADERS[name];
  if (place === 'path')
    return name === 'id' ? IDS[path.slice(0, path.indexOf('/{id}'))] : (IN_PATH[name] ?? FILES[path]);
  const own = IN_QUERY[path.replace(/^\/\{tenant\}/, '')];
  return own === undefined ? OF_LISTS[name as keyof typeof OF_LISTS] : own[name];
}
