import { strictObject, z } from 'zod';
import { describeConfirmedSigner } from '../../domain/audit/describe-change.ts';
import type { Role } from '../../domain/clients/role.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import type { IssuanceConfiguration } from '../../domain/issuance/issuance-configuration.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { StoredListSummary } from '../../domain/trust-lists/stored-list.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Store } from '../ports/store.ts';
import { changeTenantExclusively } from '../transactions/tenant-changes.ts';
import { copyIdOf } from './list-copies.ts';
import { pinSigners, thumbprintOf } from './verify-trust-list.ts';

export const MAX_FOLLOWED_LISTS = 500;
/** Maximum number of signer certificates of one anchor, and of the issuance configuration. */
const MAX_SIGNERS = 20;

/** @param fingerprint base64url, or hex as other programs print it. */
function toBase64url(fingerprint: string): string {
  const hex = fingerprint.replaceAll(':', '');
  return hex.length === 64 ? Buffer.from(hex, 'hex').toString('base64url') : fingerprint;
}

export const SignerConfirmation = strictObject({
  fingerprint: z
    .string()
    .regex(
      /^(?:[A-Za-z0-9_-]{43}|[0-9A-Fa-f]{64}|[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){31})$/,
      'SHA-256 of the certificate, base64url, or hex with or without colons',
    )
    .transform(toBase64url)
    .describe(
      'Fingerprint of the confirmed certificate, compared with the one that its operator published: SHA-256, base64url, or hex with or ' +
        'without colons',
    ),
}).meta({ id: 'SignerConfirmation' });
export type SignerConfirmation = z.infer<typeof SignerConfirmation>;

/** Lists the external trust lists that were requested, with recorded problems. */
export class ListFollowedLists extends needs({ store: Store }) {
  execute({ tenantId }: TenantCaller): Promise<readonly StoredListSummary[]> {
    return this.ports.store.lists(tenantId).storedLists(MAX_FOLLOWED_LISTS);
  }
}

/**
 * Confirms a new signer of an external list: the certificate is added wherever the list is configured with the same signers. The previous
 * signers remain until a configuration is written without them.
 */
export class ConfirmSigner extends needs({ store: Store, clock: Clock, eventBus: EventBus }) {
  /**
   * @throws Failure `not_found`; `conflict` when no signer waits for confirmation, or the list of lists determines the signer; `forbidden`
   *   without the role of a configuration that contains the list; `invalid_input` for another certificate than the one that waits.
   */
  async execute(caller: TenantCaller, id: string, { fingerprint }: SignerConfirmation): Promise<void> {
    const { store, clock, eventBus } = this.ports;
    const storedLists = store.lists(caller.tenantId);
    const list = (await storedLists.storedLists(MAX_FOLLOWED_LISTS)).find((entry) => entry.id === id);
    if (list === undefined) throw new Failure('not_found');
    const signer = list.held?.signer;
    if (signer === undefined) throw new Failure('conflict', 'no signer of this list waits for confirmation');
    if (list.place.via !== undefined) throw new Failure('conflict', 'the list of lists that points to it defines its signer');
    if (thumbprintOf(signer) !== fingerprint)
      throw invalidInput('fingerprint', 'is not the fingerprint of the certificate that waits for confirmation');
    const pem = writePemCertificates([signer]);
    const now = clock.now();
    await changeTenantExclusively(store, caller, async (repositories) => {
      const presentations = await repositories.presentationConfigurations.list();
      const usingPresentations = presentations.filter((configuration) => usesList(configuration, list));
      const issuance = await repositories.issuanceConfiguration.find('default');
      const usingIssuance = issuance !== undefined && usesWalletList(issuance, list) ? issuance : undefined;
      if (usingPresentations.length === 0 && usingIssuance === undefined) {
        throw new Failure('conflict', 'no configuration uses this list with these signers any more');
      }
      if (usingPresentations.length > 0) assertRole(caller, 'presentation:manage');
      if (usingIssuance !== undefined) assertRole(caller, 'issuance:manage');
      for (const configuration of usingPresentations)
        await repositories.presentationConfigurations.put({ ...withSigner(configuration, list, pem), updatedAt: now });
      if (usingIssuance !== undefined) {
        const signers = addSigner(usingIssuance.walletProviderTrustListCertificates ?? [], pem);
        const updatedIssuance = { ...usingIssuance, walletProviderTrustListCertificates: [...signers], updatedAt: now };
        await repositories.issuanceConfiguration.put(updatedIssuance);
      }
      const { origin, pathname } = new URL(list.place.uri);
      repositories.audit.note(describeConfirmedSigner(origin + pathname, fingerprint));
    });
    await storedLists.forgetList(id);
    // Cached copies and problems belong to the previous signers.
    eventBus.publish({ type: 'cache', tenantId: caller.tenantId, lists: 'trust-lists' });
  }
}

function assertRole({ roles }: TenantCaller, role: Role): void {
  if (!roles.includes(role)) throw new Failure('forbidden', `a configuration with this list requires ${role}`);
}

type Anchors = PresentationConfiguration['trustAnchors'];

function isSameList(anchor: Anchors[number], { id, place }: StoredListSummary): boolean {
  if (!('trustList' in anchor) || anchor.trustList !== place.uri) return false;
  return copyIdOf(anchor.trustList, pinSigners(anchor.signedBy ?? [])) === id;
}

function usesList(configuration: PresentationConfiguration, list: StoredListSummary): boolean {
  // A configuration of an earlier version may lack anchors; the tenant's own authorities are trusted then.
  return (configuration.trustAnchors ?? []).some((anchor) => isSameList(anchor, list));
}

function withSigner(configuration: PresentationConfiguration, list: StoredListSummary, pem: string): PresentationConfiguration {
  const trustAnchors = configuration.trustAnchors.map((anchor) =>
    'trustList' in anchor && isSameList(anchor, list) ? { ...anchor, signedBy: [...addSigner(anchor.signedBy ?? [], pem)] } : anchor,
  );
  return { ...configuration, trustAnchors };
}

function usesWalletList(configuration: IssuanceConfiguration, { id, place }: StoredListSummary): boolean {
  const { walletProviderTrustLists: lists = [], walletProviderTrustListCertificates: pems = [] } = configuration;
  return lists.includes(place.uri) && copyIdOf(place.uri, pinSigners(pems)) === id;
}

/** @throws Failure `conflict` when the limit of signers is reached. */
function addSigner(pems: readonly string[], pem: string): readonly string[] {
  if (pems.length >= MAX_SIGNERS) throw new Failure('conflict', `a list has at most ${MAX_SIGNERS} signers; remove former ones first`);
  return [...pems, pem];
}
