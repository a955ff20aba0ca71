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

export type StatusQuery = {
  readonly tenant: TenantConfiguration;
  readonly reference: { readonly idx: number; readonly uri: string };
  /** Accepted forms of the token; a JWT by default. */
  readonly forms?: TokenForms;
  /** Applies HAIP 1.0 section 6.1.1 to the token, as to its credential. */
  readonly haip?: boolean;
  /** Accepts only certificates with agreed algorithms. */
  readonly agreedOnly?: boolean;
  /** The chain of the credential, DER in standard base64, leaf first, and its validation result. */
  readonly chain: readonly string[];
  readonly issuer: Pick<Trusted, 'anchor'> & Partial<Pick<Trusted, 'names'>>;
  readonly anchors: readonly TrustAnchor[];
  /** Purpose for which that chain was validated. */
  readonly purpose: CertificatePurpose;
  /** The only accepted signers of the list, if the issuer's trust list has a revocation service of the same entity. */
  readonly revocation?: readonly TrustAnchor[] | undefined;
  /** The signing certificate of the credential is unknown: any suitable one under the same anchor is accepted. */
  readonly isSignerForgotten?: boolean;
  /** Checks the revocation of a list signer other than the issuer of the credential. @throws Refusal */
  readonly checkSigner?: (chain: readonly string[], signer: Trusted) => Promise<unknown>;
};

/** A list whose signer was accepted, only for immediate reading. */
export type VerifiedStatusList = {
  readonly bytes: Uint8Array;
  readonly bits: EntryBits;
  /** Time until which the list need not be fetched again. */
  readonly freshUntil: Date;
};

type Trusted = Extract<ChainVerdict, { trusted: true }>;

type OwnList = { readonly tenantId: TenantId; readonly listId: string };

const MAX_URI_LENGTH = 2048;

/** Checks the status of a credential that is verified in all other respects (Token Status List section 8.3). */
export class StatusVerifier extends needs({
  remoteStatusLists: RemoteStatusLists,
  localStatusLists: StatusPublisher as Token<Pick<StatusPublisher, 'statusAt' | 'signerOf' | 'entriesOf'>>,
  certificates: Certificates,
  clock: Clock,
  settings: ServiceSettings,
  tenantConfigurations: TenantConfigurations,
}) {
  /** @throws Refusal `status_…` unless the status is *valid*; an unavailable status is rejected as well. */
  async verify(question: StatusQuery): Promise<void> {
    const { uri } = question.reference;
    // Token Status List section 6.2
    if (uri.length > MAX_URI_LENGTH || !URL.canParse(uri)) throw new Refusal('status_invalid', 'uri');
    const ownList = ownListOf(uri, this.ports.settings.publicUrl);
    const status = ownList === undefined ? await this.#remoteStatus(question) : await this.#ownStatus(question, ownList);
    const verdict = verdictOf(status);
    // Token Status List section 7
    if (verdict !== 'valid') throw new Refusal(verdict, `status ${status}`);
  }

  /**
   * The whole list, for callers that follow many of its entries.
   * @param notBefore minimum fetch time of a cached copy.
   * @throws Refusal `status_…`, also if an older copy is still usable.
   */
  async list(question: Omit<StatusQuery, 'reference'> & { readonly uri: string }, notBefore: Date): Promise<VerifiedStatusList> {
    const { uri, tenant } = question;
    const query = { ...question, reference: { idx: 0, uri } };
    const ownList = ownListOf(uri, this.ports.settings.publicUrl);
    if (ownList !== undefined) {
      await this.#assertOwn(query, ownList);
      const entries = await this.ports.localStatusLists.entriesOf(ownList.tenantId, ownList.listId);
      if (entries === undefined) throw new Refusal('status_invalid', 'no such list');
      const { bits, ttlSeconds } = entries.list;
      const freshUntil = new Date(this.ports.clock.now().getTime() + ttlSeconds * 1000);
      return { bytes: entries.bytes, bits, freshUntil };
    }
    const list = await this.ports.remoteStatusLists.getSince(tenant.tenantId, uri, notBefore);
    if (this.#signerOf(list, query) === undefined) throw new Refusal('status_invalid', 'signer');
    const { bytes, bits, lifetime } = list;
    return { bytes, bits, freshUntil: lifetime.freshUntil };
  }

  async #remoteStatus(question: StatusQuery): Promise<number> {
    const { reference, tenant } = question;
    const { remoteStatusLists } = this.ports;
    const forms = question.forms ?? 'jwt';
    const cached = await remoteStatusLists.get(tenant.tenantId, reference.uri, forms);
    // The index of a recently issued credential may be beyond the end of an older copy.
    const isCovered = reference.idx < capacityOf(cached.bytes, cached.bits);
    const list = isCovered ? cached : await remoteStatusLists.getNewer(tenant.tenantId, forms, cached);
    // Token Status List section 11.3
    const signer = this.#signerOf(list, question);
    if (signer === undefined) throw new Refusal('status_invalid', 'signer');
    if (signer !== 'issuer') await question.checkSigner?.(list.signer, signer);
    return statusAt(list.bytes, list.bits, reference.idx);
  }

  /** The signer, if it is that of the credential or has a valid chain to the same anchor. */
  #signerOf({ signer }: RemoteStatusList, question: StatusQuery): Trusted | 'issuer' | undefined {
    const { chain, issuer, anchors, revocation, haip } = question;
    const isIssuer = signer[0] !== undefined && signer[0] === chain[0];
    if (revocation !== undefined) {
      const revoker = this.#revokerOf(signer, revocation, question);
      return revoker !== undefined && isIssuer ? 'issuer' : revoker;
    }
    // HAIP 1.0 section 6.1.1: the requirements of the credential's chain apply to that of the token.
    if (isIssuer) return haip !== true || this.#isTrusted(signer, question) ? 'issuer' : undefined;
    const verdict = this.#verdictOf(signer, anchors, purposesOf(question), question);
    if (verdict?.anchor === issuer.anchor) return verdict;
    return this.#laterSignerOf(signer, anchors, question);
  }

  /**
   * A later document signer of the same issuer may sign for credentials of the earlier one: its chain is valid for the purpose of the
   * credential and ends at the same anchor. Document signers have the extended key usage of their format and not that of status
   * lists, and are replaced after weeks or months.
   */
  #laterSignerOf(
    signer: readonly string[],
    anchors: readonly TrustAnchor[],
    question: Pick<StatusQuery, 'chain' | 'issuer' | 'purpose' | 'haip' | 'agreedOnly'>,
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
    { haip, agreedOnly }: Pick<StatusQuery, 'haip' | 'agreedOnly'>,
  ): Trusted | undefined {
    const now = this.ports.clock.now();
    for (const purpose of purposes) {
      const verdict = this.ports.certificates.verifyChain(signer, anchors, now, { purpose, ...defined({ haip, agreedOnly }) });
      if (verdict.trusted) return verdict;
    }
    return undefined;
  }

  #isTrusted(signer: readonly string[], { anchors, purpose, agreedOnly }: StatusQuery): boolean {
    const now = this.ports.clock.now();
    return this.ports.certificates.verifyChain(signer, anchors, now, { purpose, haip: true, ...defined({ agreedOnly }) }).trusted;
  }

  /** Token Status List section 10: the signer of credentials may sign their list without the key usage of status lists. */
  #revokerOf(
    signer: readonly string[],
    revocation: readonly TrustAnchor[],
    question: Pick<StatusQuery, 'chain' | 'issuer' | 'purpose' | 'haip' | 'agreedOnly' | 'isSignerForgotten'>,
  ): Trusted | undefined {
    const isIssuer = signer[0] !== undefined && signer[0] === question.chain[0];
    const purposes = isIssuer ? [question.purpose] : purposesOf(question);
    return this.#verdictOf(signer, revocation, purposes, question) ?? this.#laterSignerOf(signer, revocation, question);
  }

  /** A list of this service is valid only for credentials of its own tenant (Token Status List section 11.3). */
  async #ownStatus(question: StatusQuery, localList: OwnList): Promise<number> {
    await this.#assertOwn(question, localList);
    const status = await this.ports.localStatusLists.statusAt(localList.tenantId, localList.listId, question.reference.idx);
    if (status === undefined) throw new Refusal('status_invalid', 'no such entry');
    return status;
  }

  async #assertOwn(question: StatusQuery, { tenantId, listId }: OwnList): Promise<void> {
    const { localStatusLists, tenantConfigurations } = this.ports;
    // Lists of a suspended tenant stay valid, so its status is not checked.
    const isOwn = tenantId === question.tenant.tenantId;
    const tenant = isOwn ? question.tenant : await tenantConfigurations.readStored(tenantId);
    if (tenant === undefined || !(await isIssuedBy(tenant, question))) {
      throw new Refusal('status_invalid', 'the list belongs to another tenant');
    }
    const { revocation } = question;
    if (revocation === undefined) return;
    // The same rule as for fetched lists: only the revocation authority may sign.
    const signer = await localStatusLists.signerOf(tenantId, listId);
    if (signer === undefined || this.#revokerOf(signer, revocation, question) === undefined) throw new Refusal('status_invalid', 'signer');
  }
}

/** Accepted purposes of a list signer other than the issuer. */
function purposesOf({ purpose, isSignerForgotten }: Pick<StatusQuery, 'purpose' | 'isSignerForgotten'>): readonly CertificatePurpose[] {
  return isSignerForgotten === true ? ['status list', purpose] : ['status list'];
}

function ownListOf(uri: string, publicUrl: string): OwnList | undefined {
  if (!uri.startsWith(`${publicUrl}/`)) return undefined;
  const [, tenantId, listId] = /^([a-z0-9-]+)\/status-list\/([^/?#]+)$/.exec(uri.slice(publicUrl.length + 1)) ?? [];
  return tenantId === undefined || listId === undefined ? undefined : { tenantId: tenantId as TenantId, listId };
}

/** True if the credential's chain is that of a key chain of the tenant, or ends at its CA. */
async function isIssuedBy(tenant: TenantConfiguration, { chain, issuer }: StatusQuery): Promise<boolean> {
  const { anchors, leaves } = await tenant.derive('own-certificates', async () => certificatesOf(await tenant.keyChains()));
  return anchors.has(issuer.anchor) || (chain[0] !== undefined && leaves.has(chain[0]));
}

function certificatesOf(chains: readonly KeyChain[]) {
  const roots = chains.flatMap(({ root, former = [] }) =>
    [root?.certificate, ...former.map((leaf) => leaf.root)].filter((certificate) => certificate !== undefined),
  );
  const leaves = chains
    .flatMap(leavesOf)
    .flatMap(({ certificates, documentSigner }) => [certificates[0], documentSigner?.[0]])
    .filter((certificate) => certificate !== undefined);
  return { anchors: new Set([...roots, ...leaves].map(thumbprintOf)), leaves: new Set(leaves) };
}
