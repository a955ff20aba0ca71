/** Statuses that Schemathesis takes for a refusal of what the document forbids. */
const REFUSALS = [400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429];

type Expected = {
  /** Of the document; all operations without it. */
  readonly path?: string;
  readonly check: 'positive_data_acceptance' | 'negative_data_rejection' | 'not_a_server_error';
  readonly statuses: readonly (number | string)[];
};

/** What is answered otherwise than its default checks expect, each with the reason why it is right. */
const ALL: readonly Expected[] = [
  // Node answers what is longer than 16 KiB before anybody here sees it, and is right (RFC 6585 section 5).
  { check: 'negative_data_rejection', statuses: [...REFUSALS, 413, 431, '5xx'] },
  // Token Status List section 8.4: a server without statuses of the past says 501.
  {
    path: '/{tenant}/status-list/{listId}',
    check: 'not_a_server_error',
    statuses: ['2xx', '3xx', '4xx', 501],
  },
  // Whether a registrar can be reached is no matter of the request.
  { path: '/registrar/config', check: 'not_a_server_error', statuses: ['2xx', '3xx', '4xx', 503] },
];

/** As a file of settings has it. */
export const EXPECTED = ALL.map(({ path, check, statuses }) => {
  const list = statuses.map((status) => `"${status}"`).join(', ');
  const line = `checks.${check}.expected-statuses = [${list}]\n`;
  return path === undefined ? line : `[[operations]]\ninclude-path = "${path}"\n${line}`;
}).join('\n');
