import { FLOWS, type Flow, OWN_LIST } from './flows.ts';
import type { Format, Profile, Row } from './verdict.ts';

/** Why a tool fails, and rightly, or by a fault of its own. */
export type ExpectedFailure = {
  readonly tool: string;
  /** All unless stated. */
  readonly profiles?: readonly Profile[];
  readonly flows?: readonly (Flow | typeof OWN_LIST)[];
  readonly formats?: readonly Format[];
  /** The expected message. Another failure in the same row is not expected. */
  readonly says: RegExp;
  readonly reason: string;
  /** `file: words of a title` of the test of ours that keeps the rule, or shows the fault; files are below `test/`. */
  readonly test: string;
};

export const EXPECTED: readonly ExpectedFailure[] = [
  {
    tool: 'eudi-dev',
    flows: [OWN_LIST],
    says: /the wallet provider is not trusted/,
    reason:
      'the signature of its list names no certificate (ETSI TS 119 182-1 section 5.1, TS 119 602 section 6.8), so the signer is ' +
      'unknown. In all other rows a list of the tests names its CA',
    test: 'unit/trust-lists/trust-lists.test.ts: without x5c',
  },
  {
    tool: '@openid4vc',
    flows: ['deferred'],
    says: /^Error retrieving deferred credentials from the service "\{\\"credentials\\":\[/,
    reason: 'it rejects deferred credentials with a `notification_id`, which OpenID4VCI 1.0 section 9.2 allows',
    test: 'http/independent-wallets.test.ts: and show a known fault of the library, which still exists',
  },
  {
    tool: 'Credo',
    flows: ['listKey'],
    formats: ['dc+sd-jwt'],
    says: /Status List JWT verification failed/,
    reason:
      'it verifies a status list with the key of the credential and ignores the certificate of the list (Token Status List ' +
      'section 11.3). It works if one key chain signs both',
    test: 'http/status-lists.test.ts: is signed without its anchor, for the address in the credential',
  },
  {
    tool: 'Credo',
    profiles: ['haip', 'eu'],
    says: /use_attestation_challenge/,
    reason:
      'its proofs of possession never contain the challenge of the server (attestation-based client authentication ' +
      'section 6.1), also after the error that provides one',
    test: 'unit/oauth/client-attestation.test.ts: is required, and returned with the error',
  },
];

/** @returns why a failure is no fault of the service; undefined when unexplained. */
export function findExpected(row: Row): ExpectedFailure | undefined {
  return EXPECTED.find(
    ({ tool, profiles, flows, formats, says }) =>
      tool === row.tool &&
      (profiles === undefined || (row.profile !== undefined && profiles.includes(row.profile))) &&
      (flows === undefined || flows.some((flow) => (flow === OWN_LIST ? flow : FLOWS[flow]) === row.flow)) &&
      (formats === undefined || (row.format !== undefined && formats.includes(row.format))) &&
      says.test(row.detail ?? ''),
  );
}

/** Unexplained failures of the service. A missing tool or feature is not a failure. */
export function unexplained(rows: readonly Row[]): readonly Row[] {
  return rows.filter((row) => row.result === 'fails' && findExpected(row) === undefined);
}
