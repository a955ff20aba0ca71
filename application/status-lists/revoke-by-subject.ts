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
    .describe('Claims of the subject, as they were issued; claims that do not identify the subject are ignored'),
  subjectClaims: SubjectClaims.optional().describe(
    'Claims that identify the subject. Default: those of each credential configuration. For credentials of a ' +
      'configuration that was changed or deleted',
  ),
  credentialConfigurationId: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('Only credentials of this configuration. Default: all that the client may use'),
}).meta({ id: 'SubjectRevocation' });
export type SubjectRevocation = z.infer<typeof SubjectRevocation>;

export type RevokedBySubject = {
  /** Number of credentials that are revoked now. */
  readonly revoked: number;
  /** Number of sessions whose credentials a job revokes within a minute. */
  readonly pending: number;
};

/** Limit of orders that one call completes itself, each in its own transaction. */
const MAX_ORDERS = 50;
/** More batches than one person has; claims that match so many do not identify a person. */
export const MAX_BATCHES = 10_000;

/** Revokes all credentials of one person (ARF 3.0 VCR_09), in all sessions. */
export class RevokeBySubject extends needs({
  store: Store,
  clock: Clock,
  subjectFingerprints: SubjectFingerprints,
  subjectRevoker: SubjectRevoker,
}) {
  /**
   * @throws Failure `invalid_input` if no configuration defines how these claims identify a person, `conflict` if they match more
   *   batches than one person can have, `forbidden` for a configuration that the client may not use.
   */
  async execute(caller: TenantCaller, revocation: SubjectRevocation): Promise<RevokedBySubject> {
    const { store, clock } = this.ports;
    const { maintenance } = store;
    const { tenantId } = caller;
    const { credentialConfigurationId: requestedId } = revocation;
    if (requestedId !== undefined) assertMayUse(caller.allowedIssuanceConfigs, [requestedId]);
    const fingerprints = await this.#fingerprints(caller, revocation);
    const allowedIds = caller.allowedIssuanceConfigs ?? [];
    const configurationIds = requestedId !== undefined ? [requestedId] : allowedIds.length > 0 ? allowedIds : undefined;
    const batchCount = await maintenance.countBatches(tenantId, fingerprints, MAX_BATCHES + 1);
    if (batchCount > MAX_BATCHES)
      throw new Failure('conflict', `more than ${MAX_BATCHES} batches match these claims, so they do not belong to one subject`);
    // Recorded before the orders: wallets that were authorized before get no credential of the person from now on, also if nothing was
    // issued yet. Grants that produced one are revoked as well.
    await maintenance.noteRevoked(tenantId, fingerprints, configurationIds, clock.now());
    await maintenance.revokeGrants(tenantId, fingerprints, clock.now());
    // Ordered first, so that the job completes what this call does not.
    await maintenance.orderRevocations(tenantId, fingerprints, configurationIds, clock.now());
    const dueOrders = await maintenance.revocationOrdersOf(tenantId, fingerprints, MAX_BATCHES);
    // There may be concurrent orders for other configurations.
    const orders = dueOrders.filter(({ credentialConfigurationId: id }) => configurationIds === undefined || configurationIds.includes(id));
    let revoked = 0;
    for (const order of orders.slice(0, MAX_ORDERS)) revoked += await this.ports.subjectRevoker.revoke(caller.tenant, order, caller);
    return { revoked, pending: Math.max(0, orders.length - MAX_ORDERS) };
  }

  async #fingerprints(
    { tenant, allowedIssuanceConfigs }: TenantCaller,
    { claims, subjectClaims, credentialConfigurationId: requestedId }: SubjectRevocation,
  ): Promise<readonly string[]> {
    const configurations = (await tenant.credentialConfigurations()).filter(
      ({ id }) =>
        (requestedId === undefined || id === requestedId) &&
        (allowedIssuanceConfigs === null || allowedIssuanceConfigs.length === 0 || allowedIssuanceConfigs.includes(id)),
    );
    const identifications =
      subjectClaims !== undefined
        ? [{ paths: subjectClaims, isFlat: true }]
        : configurations.flatMap(({ subjectClaims: paths, config }) =>
            paths === null || paths === undefined ? [] : [{ paths, isFlat: config.format === 'mso_mdoc' }],
          );
    const fingerprints = await this.ports.subjectFingerprints.ofDescribed(tenant, claims, identifications);
    if (fingerprints.length > 0) return fingerprints;
    if (identifications.length > 0) {
      const described = identifications.map(({ paths }) => paths.map((path) => path.join('.')).join(' and '));
      const alternatives = described.slice(0, 5).join(', or ');
      throw invalidInput('claims', `do not identify a subject; send ${alternatives}`);
    }
    if (requestedId === undefined) {
      const message = 'no credential configuration identifies subjects; set its subjectClaims';
      throw invalidInput('claims', message);
    }
    throw invalidInput('credentialConfigurationId', noSubjectReason(requestedId, configurations.length > 0));
  }
}

function noSubjectReason(id: string, exists: boolean): string {
  return exists
    ? `${id} does not identify subjects; set its subjectClaims for future credentials, or send here its former subjectClaims`
    : `there is no configuration ${id}; send its former subjectClaims`;
}
