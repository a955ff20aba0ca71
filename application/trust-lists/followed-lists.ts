import { strictObject, z } from 'zod';
import { describeConfirmedSigner } from '../../domain/audit/describe-change.ts';
import type { Role } from '../../domain/clients/role.ts';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import type { IssuanceConfiguration } from '../../domain/issuance/issuance-configuration.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { KeptListSummary } from '../../domain/trust-lists/kept-list.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { EventBus } from '../ports/event-bus.ts';
import { Store } from '../ports/store.ts';
import { changeOwnAlone } from '../transactions/own-changes.ts';
import { copyIdOf } from './list-copies.ts';
import { pinSigners, thumbprintOf } from './verify-trust-list.ts';

/** As many as a tenant keeps. */
export const MAX_FOLLOWED_LISTS = 500;
/** Certificates that one anchor, and the configuration of issuance, may name. */
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
      'Of the certificate that is confirmed, compared with what its operator published: SHA-256, base64url, or hex with or ' +
        'without colons',
    ),
}).meta({ id: 'SignerConfirmation' });
export type SignerConfirmation = z.infer<typeof SignerConfirmation>;

/** Trust lists of others that were looked for, and what is held against what came. */
export class ListFollowedLists extends needs({ store: Store }) {
  execute({ tenantId }: TenantCaller): Promise<readonly KeptListSummary[]> {
    return this.ports.store.lists(tenantId).keptLists(MAX_FOLLOWED_LISTS);
  }
}

/**
 * A person says that somebody else signs a list from now on: the certificate is added wherever the list is named under the same
 * signers. Who signed before stays, until a configuration is written without them.
 */
export class ConfirmSigner extends needs({ store: Store, clock: Clock, eventBus: EventBus }) {
  /**
   * @throws Failure `not_found`; `conflict` when nobody waits to be confirmed, or the list of lists says who signs; `forbidden`
   *   without the role of a configuration that names it; `invalid_input` for another certificate than the one that waits.
   */
  async execute(caller: TenantCaller, id: string, { fingerprint }: SignerConfirmation): Promise<void> {
    const { store, clock, eventBus } = this.ports;
    const kept = store.lists(caller.tenantId);
    const list = (await kept.keptLists(MAX_FOLLOWED_LISTS)).find((one) => one.id === id);
    if (list === undefined) throw new Failure('not_found');
    const signer = list.held?.signer;
    if (signer === undefined) throw new Failure('conflict', 'no signer of this list waits to be confirmed');
    if (list.place.via !== undefined) throw new Failure('conflict', 'the list of lists that points to it says who signs it');
    if (thumbprintOf(signer) !== fingerprint) throw invalidInput('fingerprint', 'is not of the certificate that waits to be confirmed');
    const pem = writePemCertificates([signer]);
    const now = clock.now();
    await changeOwnAlone(store, caller, async (own) => {
      const presentations = await own.presentationConfigurations.list();
      const asking = presentations.filter((one) => namesList(one, list));
      const issuance = await own.issuanceConfiguration.find('default');
      const issuing = issuance !== undefined && namesWalletList(issuance, list) ? issuance : undefined;
      if (asking.length === 0 && issuing === undefined) {
        throw new Failure('conflict', 'no configuration names this list under these signers any more');
      }
      if (asking.length > 0) assertRole(caller, 'presentation:manage');
      if (issuing !== undefined) assertRole(caller, 'issuance:manage');
      for (const one of asking) await own.presentationConfigurations.put({ ...withSigner(one, list, pem), updatedAt: now });
      if (issuing !== undefined) {
        const signers = withOne(issuing.walletProviderTrustListCertificates ?? [], pem);
        const changed = { ...issuing, walletProviderTrustListCertificates: [...signers], updatedAt: now };
        await own.issuanceConfiguration.put(changed);
      }
      const { origin, pathname } = new URL(list.place.uri);
      own.audit.note(describeConfirmedSigner(origin + pathname, fingerprint));
    });
    await kept.forgetList(id);
    // What stood in for it, and what was found wrong with it, is of the signers before.
    eventBus.publish({ type: 'cache', tenantId: caller.tenantId, lists: 'trust-lists' });
  }
}

function assertRole({ roles }: TenantCaller, role: Role): void {
  if (!roles.includes(role)) throw new Failure('forbidden', `a configuration names it that takes ${role}`);
}

type Anchors = PresentationConfiguration['trustAnchors'];

function isMeant(anchor: Anchors[number], { id, place }: KeptListSummary): boolean {
  if (!('trustList' in anchor) || anchor.trustList !== place.uri) return false;
  return copyIdOf(anchor.trustList, pinSigners(anchor.signedBy ?? [])) === id;
}

function namesList(configuration: PresentationConfiguration, list: KeptListSummary): boolean {
  // One of an earlier release may have no anchors, and means its own.
  return (configuration.trustAnchors ?? []).some((anchor) => isMeant(anchor, list));
}

function withSigner(configuration: PresentationConfiguration, list: KeptListSummary, pem: string): PresentationConfiguration {
  const trustAnchors = configuration.trustAnchors.map((anchor) =>
    'trustList' in anchor && isMeant(anchor, list) ? { ...anchor, signedBy: [...withOne(anchor.signedBy ?? [], pem)] } : anchor,
  );
  return { ...configuration, trustAnchors };
}

function namesWalletList(configuration: IssuanceConfiguration, { id, place }: KeptListSummary): boolean {
  const { walletProviderTrustLists: lists = [], walletProviderTrustListCertificates: pems = [] } = configuration;
  return lists.includes(place.uri) && copyIdOf(place.uri, pinSigners(pems)) === id;
}

/** @throws Failure `conflict` where there is no room. */
function withOne(pems: readonly string[], pem: string): readonly string[] {
  if (pems.length >= MAX_SIGNERS) throw new Failure('conflict', `a list has at most ${MAX_SIGNERS} signers; take former ones out first`);
  return [...pems, pem];
}
