/** Statuses that Schemathesis takes for a refusal of what the document forbids. */
const REFUSALS = [400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429];
/** And for an answer to what the document allows. */
const ANSWERS = ['2xx', '3xx', 401, 403, 404, 409, 429, '5xx'];

type ExpectedResult = {
  /** Of the document; all operations without them. */
  readonly paths?: readonly string[];
  readonly check: 'positive_data_acceptance' | 'negative_data_rejection' | 'not_a_server_error';
  readonly statuses: readonly (number | string)[];
};

/** What is answered otherwise than its default checks expect, each with the reason why it is right; see test/README.md. */
const ALL: readonly ExpectedResult[] = [
  // Node answers what is longer than 16 KiB before anybody here sees it (RFC 6585 section 5).
  { check: 'negative_data_rejection', statuses: [...REFUSALS, 413, 431, '5xx'] },
  // Token Status List section 8.4: a server without statuses of the past says 501.
  { paths: ['/{tenant}/status-list/{listId}'], check: 'not_a_server_error', statuses: ['2xx', '3xx', '4xx', 501] },
  // Whether a registrar can be reached is no matter of the request.
  { paths: ['/registrar/config'], check: 'not_a_server_error', statuses: ['2xx', '3xx', '4xx', 503] },
  // A secret can be fetched once.
  { paths: ['/client/{id}/secret'], check: 'positive_data_acceptance', statuses: [...ANSWERS, 410] },
  // A request can be answered once, and a delivery is told as long as it is kept.
  {
    paths: [...['/{tenant}/response/{requestId}', '/{tenant}/dc-api/{requestId}'], '/session/{id}/deliveries/{deliveryId}/retry'],
    check: 'positive_data_acceptance',
    statuses: [...ANSWERS, 410],
  },
  // Bodies that name other things of the tenant (roles and statuses among them), or hold keys, certificates and documents of
  // others: whether there are such things, and whether that is one, no schema says.
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

/** As a file of settings has it. */
export const EXPECTED = [
  ...ALL.filter(({ paths }) => paths === undefined).map(settings),
  ...[...resultsByPath].map(([path, results]) => `\n[[operations]]\ninclude-path = "${path}"\n${results.map(settings).join('')}`),
].join('');
