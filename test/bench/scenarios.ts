import type { CryptoCosts } from './floor.ts';

export const PRESENTATION_SCENARIOS = ['verify', 'verify-mdoc', 'verify-20'] as const;
export type PresentationScenario = (typeof PRESENTATION_SCENARIOS)[number];

export type ScenarioName =
  | 'issue'
  | 'issue-status'
  | 'issue-mdoc'
  | 'batch'
  | 'code'
  | PresentationScenario
  | 'offer'
  | 'status-list'
  | 'revoke'
  | 'revoke-read'
  | 'session'
  | 'sessions';

export type Scenario = {
  readonly name: ScenarioName;
  readonly title: string;
  /** Milliseconds of service and database CPU per flow, on the machine of reference; absent: only reported. */
  readonly goalMs?: number;
  /** The estimated minimum with express, PostgreSQL and Node, on the reference machine. */
  readonly practicalMs?: number;
  /** Milliseconds of bare cryptography on this machine; 0 when the flow has none. */
  readonly floorMs: (costs: CryptoCosts) => number;
};

const DISCLOSURES = 16;

/**
 * Two DPoP proofs and a key proof, each with a key never seen before; an access token, signed and verified; a
 * credential.
 */
const issuance = ({ signMs, verifyMs, importMs, hashMs }: CryptoCosts) =>
  3 * (verifyMs + importMs) + verifyMs + 2 * signMs + DISCLOSURES * hashMs;

const BATCH = 10;

/** Like `issuance`, with a key proof and a credential for each of the batch. */
const batch = ({ signMs, verifyMs, importMs, hashMs }: CryptoCosts) =>
  (2 + BATCH) * (verifyMs + importMs) + verifyMs + (1 + BATCH) * signMs + BATCH * DISCLOSURES * hashMs;

/** `issuance`, another DPoP proof, and two proofs of possession beside two attestations of a provider that is known. */
const attested = (costs: CryptoCosts) => issuance(costs) + 3 * (costs.verifyMs + costs.importMs) + 2 * costs.verifyMs;

/** A request object, a fresh encryption key, a decryption; of each credential issuer and holder. */
const verificationFlow =
  (credentials: number) =>
  ({ signMs, verifyMs, importMs, generateMs, agreeMs }: CryptoCosts) =>
    signMs + generateMs + agreeMs + credentials * (2 * verifyMs + importMs);

const noRequests = () => 0;
const signature = ({ signMs }: CryptoCosts) => signMs;

/** Scenarios in the order of the table. */
export const SCENARIOS: readonly Scenario[] = [
  { name: 'issue', title: 'issue (offer, token, nonce, credential)', goalMs: 1.6, practicalMs: 1.3, floorMs: issuance },
  { name: 'issue-status', title: 'issue with status', goalMs: 1.7, practicalMs: 1.4, floorMs: issuance },
  { name: 'issue-mdoc', title: 'issue an mdoc', goalMs: 1.8, practicalMs: 1.5, floorMs: issuance },
  { name: 'batch', title: 'issue a batch of 10 with status', goalMs: 3.2, practicalMs: 2.6, floorMs: batch },
  { name: 'code', title: 'issue by code with attestation (offer, par, page, token, nonce, credential)', floorMs: attested },
  {
    name: 'verify',
    title: 'verify with status (offer, request, response, poll)',
    goalMs: 1.3,
    practicalMs: 1.1,
    floorMs: verificationFlow(1),
  },
  { name: 'verify-mdoc', title: 'verify an mdoc with status', goalMs: 2.2, floorMs: verificationFlow(1) },
  { name: 'verify-20', title: 'verify 20 credentials of 5 sets', floorMs: verificationFlow(20) },
  { name: 'offer', title: 'offer only', goalMs: 0.25, practicalMs: 0.2, floorMs: noRequests },
  { name: 'status-list', title: 'status list GET', goalMs: 0.04, practicalMs: 0.035, floorMs: noRequests },
  { name: 'revoke', title: 'revoke', goalMs: 0.4, practicalMs: 0.35, floorMs: signature },
  {
    // A list token is only created on request, so the list is fetched after each change.
    name: 'revoke-read',
    title: 'revoke, then GET the new list',
    goalMs: 0.9 + 0.1,
    floorMs: signature,
  },
  { name: 'session', title: 'session GET', goalMs: 0.12, practicalMs: 0.1, floorMs: noRequests },
  { name: 'sessions', title: 'first page of 100 sessions', goalMs: 10, floorMs: noRequests },
];

/** Dimensions of growth. */
export const GROWTHS = ['sessions', 'tenants', 'lists', 'keys'] as const;
export type Growth = (typeof GROWTHS)[number];
