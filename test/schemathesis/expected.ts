/** Statuses that Schemathesis accepts as a rejection. */
const REFUSALS = [400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429];
/** And for an answer to what the document allows. */
const ANSWERS = ['2xx', '3xx', 401, 403, 404, 409, 429, '5xx'];

type ExpectedResult = {
  /** Paths of the document; all operations without them. */
  readonly paths?: readonly string[];
  readonly check: 'positive_data_acceptance' | 'negative_data_rejection' | 'not_a_server_error';
  readonly statuses: readonly (number | string)[];
};

/** Responses that differ from the default checks, each with its reason; see test/README.md. */
const ALL: readonly ExpectedResult[] = [
  // Node answers headers above 16 KiB itself (RFC 6585 section 5).
  { check: 'negative_data_rejection', statuses: [...REFUSALS, 413, 431, '5xx'] },
  // Token Status List section 8.4: a server without statuses of the past says 501.
  { paths: ['/{tenant}/status-list/{listId}'], check: 'not_a_server_error', statuses: ['2xx', '3xx', '4xx', 501] },
  // Whether a registrar can be reached is no matter of the request.
  { paths: ['/registrar/config'], check: 'not_a_server_error', statuses: ['2xx', '3xx', '4xx', 503] },
  // A secret can be fetched once.
  { paths: ['/client/{id}/secret'], check: 'positive_data_acceptance', statuses: [...ANSWERS, 410] },
  // A request can be answered once, and a delivery is visible while it is stored.
  {
    paths: [...['/{tenant}/response/{requestId}', '/{tenant}/dc-api/{requestId}'], '/session/{id}/deliveries/{deliveryId}/retry'],
    check: 'positive_data_acceptance',
    statuses: [...ANSWERS, 410],
  },
  // Bodies that reference other resources of the tenant (roles and statuses among them), or contain external keys,
  // certificates and documents: no schema can express whether they exist and are valid.
  {
    paths: [
      ...['/tenant', '/tenant/{id}', '/issuer/config', '/issuer/credentials', '/issuer/credentials/{id}'],
      ...['/issuer/offer', '/verifier/config', '/verifier/config/{id}', '/verifier/offer', '/status-lists'],
      ...['/status-lists/{listId}', '/trust-list', '/trust-list/{id}', '/key', '/key-chain', '/key-chain/import'],
      ...['/key-chain/{id}', '/key-chain/{id}/rotate', '/certs', '/certs/{certId}', '/registrar/config'],
      ...['/registrar/access-certificate', '/registrar/registration-certificate'],
      ...['/issuer/deferred/{transactionId}/complete', '/session/revoke', '/client', '/client/{id}'],
    ],
    check: 'positive_data_acceptance',
    statuses: [...ANSWERS, 400],
  },
  // The same; and metadata of a wallet is JSON within a form.
  { paths: ['/{tenant}/request/{requestId}'], check: 'positive_data_acceptance', statuses: [...ANSWERS, 400, 410] },
];

const settings = ({ check, statuses }: ExpectedResult) =>
  `checks.${check}.expected-statuses = [${statuses.map((status) => `"${status}"`).join(', ')}]\n`;

const resultsByPath = Map.groupBy(
  ALL.flatMap((expected) => (expected.paths ?? []).map((path) => ({ ...expected, path }))),
  ({ path }) => path,
);

/** The configuration file of Schemathesis. */
export const EXPECTED = [
  ...ALL.filter(({ paths }) => paths === undefined).map(settings),
  ...[...resultsByPath].map(([path, results]) => `\n[[operations]]\ninclude-path = "${path}"\n${results.map(settings).join('')}`),
].join('');
