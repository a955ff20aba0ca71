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
  /** Milliseconds of server and database CPU per flow on the machine of reference; absent: only reported. */
  readonly limitMs?: number;
  /** Milliseconds of bare cryptography on the machine of reference; 0 when the flow has none. */
  readonly referenceFloorMs: number;
  /** The same of this machine. */
  readonly floorMs: (costs: CryptoCosts) => number;
};

/** What the limits were measured with; a machine without floor for a flow is compared by these two. */
export const REFERENCE = { signMs: 0.049, verifyMs: 0.091 } as const;

const DISCLOSURES = 16;

/**
 * Two DPoP proofs and a key proof, each with a key never seen before; an access token, signed and verified; a
 * credential. With the reference's costs this is its 0.57 ms.
 */
const issuance = ({ signMs, verifyMs, importMs, hashMs }: CryptoCosts) =>
  3 * (verifyMs + importMs) + verifyMs + 2 * signMs + DISCLOSURES * hashMs;

const BATCH = 10;

/** Like `issuance`, with a key proof and a credential for each of the batch. */
const batch = ({ signMs, verifyMs, importMs, hashMs }: CryptoCosts) =>
  (2 + BATCH) * (verifyMs + importMs) + verifyMs + (1 + BATCH) * signMs + BATCH * DISCLOSURES * hashMs;

/** `issuance`, another DPoP proof, and two proofs of possession beside two attestations of a provider that is known. */
const attested = (costs: CryptoCosts) =>
  issuance(costs) + 3 * (costs.verifyMs + costs.importMs) + 2 * costs.verifyMs;

/** A request object, a fresh encryption key, a decryption; of each credential issuer and holder. */
const verificationOf =
  (credentials: number) =>
  ({ signMs, verifyMs, importMs, generateMs, agreeMs }: CryptoCosts) =>
    signMs + generateMs + agreeMs + credentials * (2 * verifyMs + importMs);

const nothing = () => 0;
const signature = ({ signMs }: CryptoCosts) => signMs;

/** In the order of the table. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'issue',
    title: 'issue (offer, token, nonce, credential)',
    limitMs: 2.5,
    referenceFloorMs: 0.57,
    floorMs: issuance,
  },
  {
    name: 'issue-status',
    title: 'issue with status',
    limitMs: 2.7,
    referenceFloorMs: 0.57,
    floorMs: issuance,
  },
  {
    name: 'issue-mdoc',
    title: 'issue an mdoc',
    limitMs: 3.0,
    referenceFloorMs: 0.57,
    floorMs: issuance,
  },
  {
    name: 'batch',
    title: 'issue a batch of 10 with status',
    limitMs: 7,
    referenceFloorMs: 2.15,
    floorMs: batch,
  },
  {
    name: 'code',
    title: 'issue by code with attestation (offer, par, page, token, nonce, credential)',
    referenceFloorMs: 0,
    floorMs: attested,
  },
  {
    name: 'verify',
    title: 'verify with status (offer, request, response, poll)',
    limitMs: 1.9,
    referenceFloorMs: 0.36,
    floorMs: verificationOf(1),
  },
  {
    name: 'verify-mdoc',
    title: 'verify an mdoc with status',
    limitMs: 2.2,
    referenceFloorMs: 0.36,
    floorMs: verificationOf(1),
  },
  {
    name: 'verify-20',
    title: 'verify 20 credentials of 5 sets',
    referenceFloorMs: 0,
    floorMs: verificationOf(20),
  },
  { name: 'offer', title: 'offer only', limitMs: 0.5, referenceFloorMs: 0, floorMs: nothing },
  { name: 'status-list', title: 'status list GET', limitMs: 0.1, referenceFloorMs: 0, floorMs: nothing },
  { name: 'revoke', title: 'revoke', limitMs: 0.9, referenceFloorMs: 0.05, floorMs: signature },
  {
    // A token that nobody fetches need not be made; here everyone fetches the list after each change.
    name: 'revoke-read',
    title: 'revoke, then GET the new list',
    limitMs: 0.9 + 0.1,
    referenceFloorMs: 0.05,
    floorMs: signature,
  },
  { name: 'session', title: 'session GET', limitMs: 0.25, referenceFloorMs: 0, floorMs: nothing },
  {
    name: 'sessions',
    title: 'first page of 100 sessions',
    limitMs: 10,
    referenceFloorMs: 0,
    floorMs: nothing,
  },
];

/** The limit of a scenario on this machine, by the ratio of what cryptography costs here and there. */
export function limitHere(scenario: Scenario, costs: CryptoCosts): number | undefined {
  if (scenario.limitMs === undefined) return undefined;
  const speed =
    scenario.referenceFloorMs === 0
      ? (costs.signMs + costs.verifyMs) / (REFERENCE.signMs + REFERENCE.verifyMs)
      : scenario.floorMs(costs) / scenario.referenceFloorMs;
  return scenario.limitMs * speed;
}
