import type { CertificatePurpose } from '../../domain/keys/certificate-purpose.ts';
import { type KeyChain, leavesOf } from '../../domain/keys/key-chain.ts';
import { isOfSameIssuer } from '../../domain/keys/same-issuer.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { capacityOf, type EntryBits } from '../../domain/status-lists/bits.ts';
import { statusAt, verdictOf } from '../../domain/status-lists/reference.ts';
import { needs, type Token } from '../needs.ts';
import { Certificates, type ChainVerdict, type TrustAnchor } from '../ports/certificates.ts';
import { Clock } from '../ports/clock.ts';
import { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { thumbprintOf } from '../trust-lists/verify-trust-list.ts';
import { type RemoteStatusList, RemoteStatusLists, type TokenForms } from './remote-status-lists.ts';
import { StatusPublisher } from './status-publisher.ts';

export type StatusQuestion = {
  /** The verifying tenant. */
  readonly configured: TenantConfiguration;
  readonly reference: { readonly idx: number; readonly uri: string };
  /** Forms of the token that may speak about the credential; a JWT unless stated. */
  readonly forms?: TokenForms;
  /** Whether the token is held to HAIP 1.0 section 6.1.1, as its credential was. */
  readonly haip?: boolean;
  /** Whether its certificates count by agreed algorithms alone. */
  readonly agreedOnly?: boolean;
  /** The chain of the credential, DER in standard base64, leaf first, and what validated it. */
  readonly chain: readonly string[];
  readonly issuer: Pick<Trusted, 'anchor'> & Partial<Pick<Trusted, 'names'>>;
  readonly anchors: readonly TrustAnchor[];
  /** What that chain was validated for. */
  readonly purpose: CertificatePurpose;
  /** Who alone may sign the list, where the issuer's trust list names a revocation service of the same entity. */
  readonly revocation?: readonly TrustAnchor[] | undefined;
  /** The certificate that signed is not known any more: one under the same anchor that could have, speaks for it, too. */
  readonly isSignerForgotten?: boolean;
  /** Looks at the revocation of certificates that signed a list of others, where the credential's own did not. @throws Refusal */
  readonly checkSigner?: (chain: readonly string[], signer: Trusted) => Promise<unknown>;
};

/** Entries of a list that may speak about what it was asked for. They are read, and not kept. */
export type SpokenList = {
  readonly bytes: Uint8Array;
  readonly bits: EntryBits;
  /** From then on there may be others. */
  readonly freshUntil: Date;
};

type Trusted = Extract<ChainVerdict, { trusted: true }>;

type OwnList = { readonly tenantId: TenantId; readonly listId: string };

const MAX_URI_LENGTH = 2048;

/** Asks whether a credential, verified in all other respects, is still valid (Token Status List section 8.3). */
export class StatusVerifier extends needs({
  remoteStatusLists: RemoteStatusLists,
  ownStatusLists: StatusPublisher as Token<Pick<StatusPublisher, 'statusAt' | 'signerOf' | 'entriesOf'>>,
  certificates: Certificates,
  clock: Clock,
  settings: ServiceSettings,
  tenantConfigurations: TenantConfigurations,
}) {
  /** @throws Refusal `status_…` unless the status is *valid*; what cannot be established refuses as well. */
  async verify(question: StatusQuestion): Promise<void> {
    const { uri } = question.reference;
    // Token Status List section 6.2
    if (uri.length > MAX_URI_LENGTH || !URL.canParse(uri)) throw new Refusal('status_invalid', 'uri');
    const own = ownListOf(uri, this.ports.settings.publicUrl);
    const status = own === undefined ? await this.#remoteStatus(question) : await this.#ownStatus(question, own);
    const verdict = verdictOf(status);
    // Token Status List section 7
    if (verdict !== 'valid') throw new Refusal(verdict, `status ${status}`);
  }

  /**
   * The whole list, for those who follow many of its entries.
   * @param notBefore an older copy does not do.
   * @throws Refusal `status_…`, also where an older copy could stand in.
   */
  async list(question: Omit<StatusQuestion, 'reference'> & { readonly uri: string }, notBefore: Date): Promise<SpokenList> {
    const { uri, configured } = question;
    const asked = { ...question, reference: { idx: 0, uri } };
    const own = ownListOf(uri, this.ports.settings.publicUrl);
    if (own !== undefined) {
      await this.#assertOwn(asked, own);
      const found = await this.ports.ownStatusLists.entriesOf(own.tenantId, own.listId);
      if (found === undefined) throw new Refusal('status_invalid', 'no such list');
      const { bits, ttlSeconds } = found.list;
      const freshUntil = new Date(this.ports.clock.now().getTime() + ttlSeconds * 1000);
      return { bytes: found.bytes, bits, freshUntil };
    }
    const list = await this.ports.remoteStatusLists.renewed(configured.tenantId, uri, notBefore);
    if (this.#signerOf(list, asked) === undefined) throw new Refusal('status_invalid', 'signer');
    const { bytes, bits, lifetime } = list;
    return { bytes, bits, freshUntil: lifetime.freshUntil };
  }

  async #remoteStatus(question: StatusQuestion): Promise<number> {
    const { reference, configured } = question;
    const { remoteStatusLists } = this.ports;
    const forms = question.forms ?? 'jwt';
    const known = await remoteStatusLists.get(configured.tenantId, reference.uri, forms);
    // One that was issued a moment ago may have an entry that this copy is too old for.
    const isCovered = reference.idx < capacityOf(known.bytes, known.bits);
    const list = isCovered ? known : await remoteStatusLists.later(configured.tenantId, forms, known);
    // Token Status List section 11.3
    const signer = this.#signerOf(list, question);
    if (signer === undefined) throw new Refusal('status_invalid', 'signer');
    if (signer !== 'issuer') await question.checkSigner?.(list.signer, signer);
    return statusAt(list.bytes, list.bits, reference.idx);
  }

  /** The certificate that signed the credential, or what validated another one under the anchor that vouched for it. */
  #signerOf({ signer }: RemoteStatusList, question: StatusQuestion): Trusted | 'issuer' | undefined {
    const { chain, issuer, anchors, revocation, haip } = question;
    const isIssuer = signer[0] !== undefined && signer[0] === chain[0];
    if (revocation !== undefined) {
      const revoker = this.#revokerOf(signer, revocation, question);
      return revoker !== undefined && isIssuer ? 'issuer' : revoker;
    }
    // HAIP 1.0 section 6.1.1: the chain of the token is held to as much as that of the credential.
    if (isIssuer) return haip !== true || this.#isTrusted(signer, question) ? 'issuer' : undefined;
    const verdict = this.#verdictOf(signer, anchors, purposesOf(question), question);
    if (verdict?.anchor === issuer.anchor) return verdict;
    return this.#laterSignerOf(signer, anchors, question);
  }

  /**
   * A later document signer of the same issuer speaks for the credentials of the earlier one: its chain is valid for the
   * purpose of the credential and ends at the same anchor. Document signers have the extended key usage of their format
   * and not that of status lists, and are replaced after weeks or months.
   */
  #laterSignerOf(
    signer: readonly string[],
    anchors: readonly TrustAnchor[],
    question: Pick<StatusQuestion, 'chain' | 'issuer' | 'purpose' | 'haip' | 'agreedOnly'>,
  ): Trusted | undefined {
    const { chain, issuer, purpose } = question;
    const verdict = this.#verdictOf(signer, anchors, [purpose], question);
    if (verdict?.anchor !== issuer.anchor || verdict.isPin === true) return undefined;
    if (!isOfSameIssuer(signer[0], chain[0])) return undefined;
    const { names = [] } = issuer;
    const sharesName = names.length === 0 || names.some((name) => verdict.names.includes(name));
    return sharesName ? verdict : undefined;
  }

  #verdictOf(
    signer: readonly string[],
    anchors: readonly TrustAnchor[],
    purposes: readonly CertificatePurpose[],
    { haip, agreedOnly }: Pick<StatusQuestion, 'haip' | 'agreedOnly'>,
  ): Trusted | undefined {
    const now = this.ports.clock.now();
    for (const purpose of purposes) {
      const verdict = this.ports.certificates.verifyChain(signer, anchors, now, { purpose, ...defined({ haip, agreedOnly }) });
      if (verdict.trusted) return verdict;
    }
    return undefined;
  }

  #isTrusted(signer: readonly string[], { anchors, purpose, agreedOnly }: StatusQuestion): boolean {
    const now = this.ports.clock.now();
    return this.ports.certificates.verifyChain(signer, anchors, now, { purpose, haip: true, ...defined({ agreedOnly }) }).trusted;
  }

  /** Token Status List section 10: one that signs credentials speaks for its own without being for status lists. */
  #revokerOf(
    signer: readonly string[],
    revocation: readonly TrustAnchor[],
    question: Pick<StatusQuestion, 'chain' | 'issuer' | 'purpose' | 'haip' | 'agreedOnly' | 'isSignerForgotten'>,
  ): Trusted | undefined {
    const isIssuer = signer[0] !== undefined && signer[0] === question.chain[0];
    const purposes = isIssuer ? [question.purpose] : purposesOf(question);
    return this.#verdictOf(signer, revocation, purposes, question) ?? this.#laterSignerOf(signer, revocation, question);
  }

  /** A list of this service speaks for the credentials of its own tenant only (Token Status List section 11.3). */
  async #ownStatus(question: StatusQuestion, own: OwnList): Promise<number> {
    await this.#assertOwn(question, own);
    const status = await this.ports.ownStatusLists.statusAt(own.tenantId, own.listId, question.reference.idx);
    if (status === undefined) throw new Refusal('status_invalid', 'no such entry');
    return status;
  }

  async #assertOwn(question: StatusQuestion, { tenantId, listId }: OwnList): Promise<void> {
    const { ownStatusLists, tenantConfigurations } = this.ports;
    // Lists of a suspended tenant stay valid, so its status is not looked at.
    const isOwn = tenantId === question.configured.tenantId;
    const configured = isOwn ? question.configured : await tenantConfigurations.stored(tenantId);
    if (configured === undefined || !(await isIssuedBy(configured, question))) {
      throw new Refusal('status_invalid', 'the list belongs to somebody else');
    }
    const { revocation } = question;
    if (revocation === undefined) return;
    // As it would be believed if it were fetched: signed by who alone may revoke for the issuer.
    const signer = await ownStatusLists.signerOf(tenantId, listId);
    if (signer === undefined || this.#revokerOf(signer, revocation, question) === undefined) throw new Refusal('status_invalid', 'signer');
  }
}

/** What a certificate has to be for that speaks about what another one signed. */
function purposesOf({ purpose, isSignerForgotten }: Pick<StatusQuestion, 'purpose' | 'isSignerForgotten'>): readonly CertificatePurpose[] {
  return isSignerForgotten === true ? ['status list', purpose] : ['status list'];
}

function ownListOf(uri: string, publicUrl: string): OwnList | undefined {
  if (!uri.startsWith(`${publicUrl}/`)) return undefined;
  const [, tenantId, listId] = /^([a-z0-9-]+)\/status-list\/([^/?#]+)$/.exec(uri.slice(publicUrl.length + 1)) ?? [];
  return tenantId === undefined || listId === undefined ? undefined : { tenantId: tenantId as TenantId, listId };
}

/** Whether the credential's chain is that of a key chain of the tenant, or ends at the CA of one. */
async function isIssuedBy(configured: TenantConfiguration, { chain, issuer }: StatusQuestion): Promise<boolean> {
  const { own, leaves } = await configured.derive('own-certificates', async () => certificatesOf(await configured.keyChains()));
  return own.has(issuer.anchor) || (chain[0] !== undefined && leaves.has(chain[0]));
}

function certificatesOf(chains: readonly KeyChain[]) {
  const roots = chains.flatMap(({ root, former = [] }) =>
    [root?.certificate, ...former.map((leaf) => leaf.root)].filter((certificate) => certificate !== undefined),
  );
  const leaves = chains
    .flatMap(leavesOf)
    .flatMap(({ certificates, documentSigner }) => [certificates[0], documentSigner?.[0]])
    .filter((certificate) => certificate !== undefined);
  return { own: new Set([...roots, ...leaves].map(thumbprintOf)), leaves: new Set(leaves) };
}
