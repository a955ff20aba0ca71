import { object, z } from 'zod';
import { assertMayUse } from '../../domain/clients/client.ts';
import { SubjectClaims } from '../../domain/issuance/subject-claims.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { SubjectFingerprints } from './subject-fingerprints.ts';
import { SubjectRevoker } from './subject-revoker.ts';

export const SubjectRevocation = object({
  claims: z
    .record(z.string().min(1).max(500), z.json())
    .transform((claims) => claims as JsonObject)
    .describe('Of the person, as they were issued; what does not identify anybody is passed over'),
  subjectClaims: SubjectClaims.optional().describe(
    'Which of the claims identify the person; unless stated, what each credential configuration says. For credentials of a ' +
      'configuration that said something else, or is gone',
  ),
  credentialConfigurationId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('Only credentials of this configuration; of all that the client may use unless stated'),
}).meta({ id: 'SubjectRevocation' });
export type SubjectRevocation = z.infer<typeof SubjectRevocation>;

export type RevokedBySubject = {
  /** Credentials that are revoked now. */
  readonly revoked: number;
  /** Sessions whose credentials are revoked by a job within a minute. */
  readonly pending: number;
};

/** What one call revokes itself, each in a transaction of its own. */
const SESSIONS = 50;
/** A person has fewer batches of credentials; claims that fit so many identify nobody. */
export const MAX_BATCHES = 10_000;

/** Revokes all credentials of one person (ARF 3.0 VCR_09), whichever sessions issued them. */
export class RevokeBySubject extends needs({
  store: Store,
  clock: Clock,
  subjectFingerprints: SubjectFingerprints,
  subjectRevoker: SubjectRevoker,
}) {
  /**
   * @throws Failure `invalid_input` where nothing says how these claims identify somebody, `conflict` where they fit more than
   *   one person could have, `forbidden` for a configuration that the client may not use.
   */
  async execute(caller: TenantCaller, revocation: SubjectRevocation): Promise<RevokedBySubject> {
    const { store, clock } = this.ports;
    const { maintenance } = store;
    const { tenantId } = caller;
    const { credentialConfigurationId: wanted } = revocation;
    if (wanted !== undefined) assertMayUse(caller.allowedIssuanceConfigs, [wanted]);
    const fingerprints = await this.#fingerprints(caller, revocation);
    const allowed = caller.allowedIssuanceConfigs ?? [];
    const some = wanted !== undefined ? [wanted] : allowed.length > 0 ? allowed : undefined;
    const found = await maintenance.countBatches(tenantId, fingerprints, MAX_BATCHES + 1);
    if (found > MAX_BATCHES)
      throw new Failure('conflict', `more than ${MAX_BATCHES} batches fit these claims, so they are not of one person`);
    // Noted before the orders: from now on wallets that were authorized before get no credential of the person, also where nothing
    // was issued yet. Grants that brought one bring nothing else either.
    await maintenance.noteRevoked(tenantId, fingerprints, some, clock.now());
    await maintenance.revokeGrants(tenantId, fingerprints, clock.now());
    // Ordered first: what this call does not come to, or dies over, the job does.
    await maintenance.orderRevocations(tenantId, fingerprints, some, clock.now());
    const all = await maintenance.revocationOrdersOf(tenantId, fingerprints, MAX_BATCHES);
    // Of other configurations there may be orders of somebody else.
    const orders = all.filter(({ credentialConfigurationId: id }) => some === undefined || some.includes(id));
    let revoked = 0;
    for (const order of orders.slice(0, SESSIONS)) revoked += await this.ports.subjectRevoker.revoke(caller.configured, order, caller);
    return { revoked, pending: Math.max(0, orders.length - SESSIONS) };
  }

  async #fingerprints(
    { configured, allowedIssuanceConfigs }: TenantCaller,
    { claims, subjectClaims, credentialConfigurationId: wanted }: SubjectRevocation,
  ): Promise<readonly string[]> {
    const configurations = (await configured.credentialConfigurations()).filter(
      ({ id }) =>
        (wanted === undefined || id === wanted) &&
        (allowedIssuanceConfigs === null || allowedIssuanceConfigs.length === 0 || allowedIssuanceConfigs.includes(id)),
    );
    const ways =
      subjectClaims !== undefined
        ? [{ paths: subjectClaims, isFlat: true }]
        : configurations.flatMap(({ subjectClaims: paths, config }) =>
            paths === null || paths === undefined ? [] : [{ paths, isFlat: config.format === 'mso_mdoc' }],
          );
    const fingerprints = await this.ports.subjectFingerprints.ofDescribed(configured, claims, ways);
    if (fingerprints.length > 0) return fingerprints;
    if (ways.length > 0) {
      const described = ways.map(({ paths }) => paths.map((path) => path.join('.')).join(' and '));
      const some = described.slice(0, 5).join(', or ');
      throw invalidInput('claims', `lack what identifies a person; give ${some}`);
    }
    if (wanted === undefined) {
      const all = 'no credential configuration says whom its credentials are about; set subjectClaims there';
      throw invalidInput('claims', all);
    }
    throw invalidInput('credentialConfigurationId', whyNobody(wanted, configurations.length > 0));
  }
}

function whyNobody(id: string, isThere: boolean): string {
  return isThere
    ? `${id} does not say whom its credentials are about; set subjectClaims there for what it issues from then on, or give here ` +
        'what it said before'
    : `there is no configuration ${id}; give here as subjectClaims what it said`;
}
