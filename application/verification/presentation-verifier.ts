import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../domain/dcql/match.ts';
import { pickDisclosed, pickRequested } from '../../domain/dcql/pick.ts';
import { parseVpToken } from '../../domain/dcql/vp-token.ts';
import { DerError } from '../../domain/formats/der/reader.ts';
import { revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import { type DisclosedObject, isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import { ownRevocationListOf } from '../../domain/keys/authority-address.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { NonceRefusal, Refusal } from '../../domain/shared/refusal.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import type { PresentedValues } from '../../domain/verification/configuration.ts';
import { type CheckedPresentation, decideVerdict, type Verdict } from '../../domain/verification/verdict.ts';
import { RevocationVerifier } from '../certificate-status/verify-revocation.ts';
import { compromisedKeysOf } from '../keys/compromised-key.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import { StatusVerifier } from '../status-lists/verify-status.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { TenantConfigurations } from '../tenant-cache/tenant-configurations.ts';
import { TypeMetadata } from '../type-metadata/type-metadata.ts';
import { credentialInputs, detailOf, issuerOf, requestInputs } from './check-inputs.ts';
import { compiledQuery } from './compiled-query.ts';
import { type IssuerTrust, IssuerTrusts, revokersOf } from './issuer-trust.ts';
import { type PresentationRules, rulesOf } from './presentation-rules.ts';
import { authorityOf, demandedLists } from './trusted-authorities.ts';
import { type AnsweredRequest, type Verified, verifyOffline } from './verify-offline.ts';

export type { AnsweredRequest } from './verify-offline.ts';

export type PresentationsToVerify = {
  readonly configured: TenantConfiguration;
  /** As it was stored when it was made: nothing that decides comes from the wallet. */
  readonly request: AnsweredRequest;
  readonly binding: Binding;
  readonly requestedAt: Date;
  /** Of the presentation configuration, whose issuers are trusted. */
  readonly configurationId: string | undefined;
  readonly vpToken: Json;
  readonly now: Date;
};

/** What one presentation is held against. */
type Task = Omit<PresentationsToVerify, 'vpToken'> & PresentationRules & { readonly trust: IssuerTrust; readonly isTrial?: true };

/** A presentation that answers no request. */
export type PresentationToTry = { readonly query: CompiledCredentialQuery; readonly text: string };
type Trial = Pick<PresentationsToVerify, 'configured' | 'now'> & { readonly configurationId: string };

/** A presentation after everything that needs no call; `verified` when it holds so far. */
type Looked =
  | { readonly checked: Accepted; readonly verified: Verified }
  | { readonly checked: CheckedPresentation; readonly verified?: undefined };
type Accepted = Extract<CheckedPresentation, { accepted: true }>;

/** Nobody can answer it: no transcript is signed, and no name is that of the audience. */
const NO_REQUEST = {
  request: { dcqlQuery: {}, nonce: '' },
  binding: { audience: [], recipients: [], transcripts: () => [] },
} as const;

/** More presentations than any wallet sends; each costs two signatures. */
const MAX_PRESENTATIONS = 100;

/** Verifies what a wallet presents, from the bytes to the values that were asked for. */
export class PresentationVerifier extends needs({
  signatures: Signatures,
  certificates: Certificates,
  revocationVerifier: RevocationVerifier,
  tenantConfigurations: TenantConfigurations,
  settings: ServiceSettings,
  statusVerifier: StatusVerifier,
  typeMetadata: TypeMetadata,
  issuerTrusts: IssuerTrusts,
}) {
  /** @throws Refusal `malformed` when the `vp_token` as a whole does not have its form. */
  async verify(wanted: PresentationsToVerify): Promise<Verdict> {
    const { request, vpToken, configured, configurationId } = wanted;
    const query = await compiledQuery(configured, configurationId, request.dcqlQuery);
    const presented = [...parseVpToken(vpToken, query)].flatMap(([id, texts]) =>
      // OpenID4VP 1.0 section 6.4.2: what was not requested is not looked at.
      query.requested.has(id) ? texts.map((text, index) => ({ id, text, index })) : [],
    );
    if (presented.length > MAX_PRESENTATIONS) throw new Refusal('malformed', 'too many presentations');
    const { policy } = request;
    const trust = await this.ports.issuerTrusts.of(configured, configurationId, policy);
    const task: Task = { ...wanted, trust, ...(await rulesOf(configured, configurationId, policy)) };
    const looked = presented.flatMap(({ id, text, index }) => {
      const own = query.credentials.get(id);
      return own === undefined ? [] : [{ query: own, ...this.#look(task, own, text, index) }];
    });
    // OpenID4VP 1.0 section 14.1: of an answer to another request nothing is used, so nobody is called about it.
    const isForeign = looked.some(({ checked }) => !checked.accepted && checked.spoilsAll);
    const checked: CheckedPresentation[] = [];
    for (const one of looked) {
      if (one.verified === undefined) checked.push(one.checked);
      else if (isForeign) checked.push({ ...one.checked, isUnasked: true });
      else checked.push(await this.#ask(task, one.query, one.verified, one.checked));
    }
    return decideVerdict(query, checked, request.transactionData ?? []);
  }

  /**
   * Holds each against its query without a request: nothing that ties a presentation to one, or to its holder, is looked at. So what
   * comes out of it is for whoever tries a question, and never an answer to it.
   */
  async try(trial: Trial, tried: readonly PresentationToTry[]): Promise<readonly CheckedPresentation[]> {
    const { configured, configurationId, now } = trial;
    const trust = await this.ports.issuerTrusts.of(configured, configurationId);
    const rules = await rulesOf(configured, configurationId);
    const task: Task = { ...NO_REQUEST, ...trial, requestedAt: now, trust, ...rules, isTrial: true };
    const checked: CheckedPresentation[] = [];
    for (const { query, text } of tried) {
      const unbound = { ...query, holderBindingRequired: false };
      const looked = this.#look(task, unbound, text, 0);
      const { verified } = looked;
      checked.push(verified === undefined ? looked.checked : await this.#ask(task, unbound, verified, looked.checked));
      // One text against many queries takes long; others come in between.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return checked;
  }

  /** OpenID4VP 1.0 section 8.6: a bad presentation is discarded, the others count. */
  #look(task: Task, query: CompiledCredentialQuery, text: string, index: number): Looked {
    const format = query.format === 'mso_mdoc' ? 'mso_mdoc' : 'dc+sd-jwt';
    const place = { queryId: query.id, index, format, ...(task.isTrial && { isTrial: task.isTrial }) } as const;
    let inputs = requestInputs(task, query);
    try {
      const { ports } = this;
      const verified = verifyOffline(ports, task, query, text);
      inputs = { ...inputs, ...credentialInputs(task, verified) };
      const authority = authorityOf(ports.certificates, task.trust, query.authorities, verified, task.now);
      const values = valuesOf(query, { ...verified.credential, authority }, task.values);
      const { confirmed, signedHash, authentication } = verified;
      const issuer = issuerOf(task, verified);
      const checked = {
        ...place,
        inputs,
        accepted: true,
        values,
        issuer,
        signedHash,
        confirmed,
        ...defined({ authentication }),
      } as const;
      return { checked, verified };
    } catch (error) {
      return { checked: refusedBy(error, task, { ...place, inputs }) };
    }
  }

  /** Token Status List section 8.3: lists are asked about what is as it was asked for, and about nothing else. */
  async #ask(task: Task, query: CompiledCredentialQuery, verified: Verified, checked: Accepted): Promise<CheckedPresentation> {
    let { inputs } = checked;
    const { queryId, index, format, isTrial } = checked;
    try {
      const { claims, alwaysVisible } = verified.credential;
      if (task.holdsToTypes && format === 'dc+sd-jwt') {
        inputs = { ...inputs, 'type metadata': String(alwaysVisible['vct']) };
        await this.ports.typeMetadata.verify(task.configured, claims as DisclosedObject, alwaysVisible as JsonObject);
      }
      const asked = await this.#checkRevocation(task, verified);
      if (asked !== undefined) inputs = { ...inputs, 'certificate revocation': asked };
      await this.#checkStatus(task, query, verified);
      return { ...checked, inputs };
    } catch (error) {
      return refusedBy(error, task, { queryId, index, format, inputs, ...(isTrial && { isTrial }) });
    }
  }

  async #checkRevocation(
    { configured, certificateRevocation: mode }: Task,
    { chain, issuer }: Pick<Verified, 'chain' | 'issuer'>,
    signer = 'signer',
  ) {
    await assertSignerNotCompromised(this.ports, configured, { chain, key: issuer.key, name: signer });
    return this.ports.revocationVerifier.verify({ tenantId: configured.tenantId, mode, chain, issuer, signer });
  }

  async #checkStatus(
    task: Task,
    { authorities }: CompiledCredentialQuery,
    { issuer, chain, purpose, statusReference, credential }: Verified,
  ): Promise<void> {
    if (statusReference === undefined) return;
    const { configured, trust, haip, algorithms } = task;
    const { agreedOnly } = algorithms;
    const checkSigner = (signer: readonly string[], verdict: Verified['issuer']) =>
      this.#checkRevocation(task, { chain: signer, issuer: verdict }, 'signer of the status list');
    const revocation = revokersOf(trust, issuer.anchor, demandedLists(authorities));
    const forms = credential.format === 'mso_mdoc' ? 'jwt-or-cwt' : 'jwt';
    // Who vouches for what was issued in the past goes on to vouch for its status.
    const isFormer = trust.dated.has(issuer.anchor);
    const anchors = isFormer ? trust.withFormer : trust.anchors;
    const signers = { chain, issuer, anchors, purpose, revocation, checkSigner };
    await this.ports.statusVerifier.verify({
      configured,
      reference: statusReference,
      forms,
      haip,
      agreedOnly,
      ...signers,
    });
  }
}

function valuesOf(query: CompiledCredentialQuery, credential: PresentedCredential, wanted: PresentedValues): JsonObject {
  const match = matchCredential(query, credential, isUndisclosed);
  if (!match.matched) throw new Refusal(match.reason, match.detail);
  return wanted === 'requested' ? pickRequested(match, credential, isUndisclosed) : pickDisclosed(credential, isUndisclosed);
}

/** @throws what is no refusal. */
function refusedBy(
  error: unknown,
  { trust }: Task,
  place: Pick<CheckedPresentation, 'queryId' | 'index' | 'format' | 'inputs' | 'isTrial'>,
): CheckedPresentation {
  if (!(error instanceof Refusal)) throw error;
  const { reason } = error;
  const spoilsAll = error instanceof NonceRefusal;
  return { ...place, accepted: false, reason, detail: detailOf(error, trust), spoilsAll };
}

type Ports = { readonly tenantConfigurations: TenantConfigurations; readonly settings: Pick<ServiceSettings, 'publicUrl'> };

type Signer = {
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly key: PublicJwk;
  /** What the report calls it. */
  readonly name: string;
};

/**
 * Rejects what a compromised key of the verifying tenant signed, or of the tenant of this service whose authority issued
 * the certificate. `certificateRevocation` does not matter: no list has to be fetched to know it.
 * @throws Refusal `certificate_revoked`.
 */
async function assertSignerNotCompromised(
  { tenantConfigurations, settings }: Ports,
  configured: TenantConfiguration,
  { chain, key, name }: Signer,
): Promise<void> {
  const id = thumbprint(key);
  const others = issuersOf(chain[0] ?? '', settings.publicUrl).filter((other) => other !== configured.tenantId);
  const owners = await Promise.all(others.map((other) => tenantConfigurations.stored(other)));
  for (const owner of [configured, ...owners]) {
    const since = owner === undefined ? undefined : (await compromisedKeysOf(owner)).get(id);
    if (since === undefined) continue;
    throw new Refusal('certificate_revoked', `${name}: keyCompromise since ${since.toISOString()}`);
  }
}

/** A certificate of an internal authority names its revocation list, which is at an address of this service. */
function issuersOf(certificate: string, publicUrl: string): readonly TenantId[] {
  try {
    const addresses = revocationSourcesOf(certificate).points.flat();
    const tenants = addresses.flatMap((uri) => ownRevocationListOf(uri, publicUrl)?.tenantId ?? []);
    return [...new Set(tenants)].slice(0, 1);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return [];
  }
}
