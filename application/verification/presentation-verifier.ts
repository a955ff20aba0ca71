import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../domain/dcql/match.ts';
import { pickDisclosed, pickRequested } from '../../domain/dcql/select-claims.ts';
import { parseVpToken } from '../../domain/dcql/vp-token.ts';
import { DerError } from '../../domain/formats/der/reader.ts';
import { revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import { type DisclosedObject, isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import { parseInternalRevocationList } from '../../domain/keys/authority-address.ts';
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
import { type IssuerTrust, IssuerTrusts, revocationAuthoritiesOf } from './issuer-trust.ts';
import { type PresentationRules, rulesOf } from './presentation-rules.ts';
import { authorityOf, demandedLists } from './trusted-authorities.ts';
import { type AnsweredRequest, type VerifiedPresentation, verifyOffline } from './verify-offline.ts';

export type { AnsweredRequest } from './verify-offline.ts';

export type PresentationsToVerify = {
  readonly tenant: TenantConfiguration;
  /** The stored request: no decision depends on data of the wallet. */
  readonly request: AnsweredRequest;
  readonly binding: Binding;
  readonly requestedAt: Date;
  /** Id of the presentation configuration, whose issuers are trusted. */
  readonly configurationId: string | undefined;
  readonly vpToken: Json;
  readonly now: Date;
};

type VerificationContext = Omit<PresentationsToVerify, 'vpToken'> &
  PresentationRules & { readonly trust: IssuerTrust; readonly isTrial?: true };

/** A presentation that answers no request. */
export type PresentationToTry = { readonly query: CompiledCredentialQuery; readonly text: string };
type Trial = Pick<PresentationsToVerify, 'tenant' | 'now'> & { readonly configurationId: string };

/** A presentation after the offline checks; `verified` if it passed them. */
type OfflineResult =
  | { readonly checked: AcceptedPresentation; readonly verified: VerifiedPresentation }
  | { readonly checked: CheckedPresentation; readonly verified?: undefined };
type AcceptedPresentation = Extract<CheckedPresentation, { accepted: true }>;

/** A request that no presentation can answer: without transcript and audience. */
const NO_REQUEST = { request: { dcqlQuery: {}, nonce: '' }, binding: { audience: [], recipients: [], transcripts: () => [] } } as const;

/** More presentations than a wallet sends; each costs two signature verifications. */
const MAX_PRESENTATIONS = 100;

/** Verifies presentations of a wallet, from the bytes to the requested values. */
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
  /** @throws Refusal `malformed` for a malformed `vp_token`. */
  async verify(presentations: PresentationsToVerify): Promise<Verdict> {
    const { request, vpToken, tenant, configurationId } = presentations;
    const query = await compiledQuery(tenant, configurationId, request.dcqlQuery);
    const presented = [...parseVpToken(vpToken, query)].flatMap(([id, texts]) =>
      // OpenID4VP 1.0 section 6.4.2: presentations that were not requested are ignored.
      query.requested.has(id) ? texts.map((text, index) => ({ id, text, index })) : [],
    );
    if (presented.length > MAX_PRESENTATIONS) throw new Refusal('malformed', 'too many presentations');
    const { policy } = request;
    const trust = await this.ports.issuerTrusts.trustOf(tenant, configurationId, policy);
    const context: VerificationContext = { ...presentations, trust, ...(await rulesOf(tenant, configurationId, policy)) };
    const offlineResults = presented.flatMap(({ id, text, index }) => {
      const credentialQuery = query.credentials.get(id);
      return credentialQuery === undefined
        ? []
        : [{ query: credentialQuery, ...this.#verifyOffline(context, credentialQuery, text, index) }];
    });
    // OpenID4VP 1.0 section 14.1: a response to another request is not used, so no lists are fetched for it.
    const invalidatesResponse = offlineResults.some(({ checked }) => !checked.accepted && checked.invalidatesResponse);
    const checked: CheckedPresentation[] = [];
    for (const result of offlineResults) {
      if (result.verified === undefined) checked.push(result.checked);
      else if (invalidatesResponse) checked.push({ ...result.checked, isOffline: true });
      else checked.push(await this.#verifyOnline(context, result.query, result.verified, result.checked));
    }
    return decideVerdict(query, checked, request.transactionData ?? []);
  }

  /**
   * Matches presentations with queries without a request: nothing that binds a presentation to a request or its holder is checked. The
   * result is for testing a query, and never a response to it.
   */
  async try(trial: Trial, presentations: readonly PresentationToTry[]): Promise<readonly CheckedPresentation[]> {
    const { tenant, configurationId, now } = trial;
    const trust = await this.ports.issuerTrusts.trustOf(tenant, configurationId);
    const rules = await rulesOf(tenant, configurationId);
    const context: VerificationContext = { ...NO_REQUEST, ...trial, requestedAt: now, trust, ...rules, isTrial: true };
    const checked: CheckedPresentation[] = [];
    for (const { query, text } of presentations) {
      const unbound = { ...query, holderBindingRequired: false };
      const result = this.#verifyOffline(context, unbound, text, 0);
      const { verified } = result;
      checked.push(verified === undefined ? result.checked : await this.#verifyOnline(context, unbound, verified, result.checked));
      // One text with many queries takes long, so other requests run in between.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return checked;
  }

  /** OpenID4VP 1.0 section 8.6: an invalid presentation is discarded, the others are used. */
  #verifyOffline(context: VerificationContext, query: CompiledCredentialQuery, text: string, index: number): OfflineResult {
    const format = query.format === 'mso_mdoc' ? 'mso_mdoc' : 'dc+sd-jwt';
    const position = { queryId: query.id, index, format, ...(context.isTrial && { isTrial: context.isTrial }) } as const;
    let inputs = requestInputs(context, query);
    try {
      const { ports } = this;
      const verified = verifyOffline(ports, context, query, text);
      inputs = { ...inputs, ...credentialInputs(context, verified) };
      const authority = authorityOf(ports.certificates, context.trust, query.authorities, verified, context.now);
      const values = valuesOf(query, { ...verified.credential, authority }, context.values);
      const { confirmed, signedHash, authentication } = verified;
      const issuer = issuerOf(context, verified);
      const checked = {
        ...position,
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
      return { checked: rejectedBy(error, context, { ...position, inputs }) };
    }
  }

  /** Token Status List section 8.3: status lists are fetched only for presentations that match the query. */
  async #verifyOnline(
    context: VerificationContext,
    query: CompiledCredentialQuery,
    verified: VerifiedPresentation,
    checked: AcceptedPresentation,
  ): Promise<CheckedPresentation> {
    let { inputs } = checked;
    const { queryId, index, format, isTrial } = checked;
    try {
      const { claims, alwaysVisible } = verified.credential;
      if (context.holdsToTypes && format === 'dc+sd-jwt') {
        inputs = { ...inputs, 'type metadata': String(alwaysVisible['vct']) };
        await this.ports.typeMetadata.verify(context.tenant, claims as DisclosedObject, alwaysVisible as JsonObject);
      }
      const revocationResult = await this.#checkRevocation(context, verified);
      if (revocationResult !== undefined) inputs = { ...inputs, 'certificate revocation': revocationResult };
      await this.#checkStatus(context, query, verified);
      return { ...checked, inputs };
    } catch (error) {
      return rejectedBy(error, context, { queryId, index, format, inputs, ...(isTrial && { isTrial }) });
    }
  }

  async #checkRevocation(
    { tenant, certificateRevocation: mode }: VerificationContext,
    { chain, issuer }: Pick<VerifiedPresentation, 'chain' | 'issuer'>,
    signer = 'signer',
  ) {
    await assertSignerNotCompromised(this.ports, tenant, { chain, key: issuer.key, name: signer });
    return this.ports.revocationVerifier.verify({ tenantId: tenant.tenantId, mode, chain, issuer, signer });
  }

  async #checkStatus(
    context: VerificationContext,
    { authorities }: CompiledCredentialQuery,
    { issuer, chain, purpose, statusReference, credential }: VerifiedPresentation,
  ): Promise<void> {
    if (statusReference === undefined) return;
    const { tenant, trust, haip, algorithms } = context;
    const { agreedOnly } = algorithms;
    const checkSigner = (signer: readonly string[], verdict: VerifiedPresentation['issuer']) =>
      this.#checkRevocation(context, { chain: signer, issuer: verdict }, 'signer of the status list');
    const revocation = revocationAuthoritiesOf(trust, issuer.anchor, demandedLists(authorities));
    const forms = credential.format === 'mso_mdoc' ? 'jwt-or-cwt' : 'jwt';
    // An issuer that was trusted at the time of issuance also vouches for the status.
    const isFormer = trust.dated.has(issuer.anchor);
    const anchors = isFormer ? trust.withFormer : trust.anchors;
    const signers = { chain, issuer, anchors, purpose, revocation, checkSigner };
    await this.ports.statusVerifier.verify({ tenant, reference: statusReference, forms, haip, agreedOnly, ...signers });
  }
}

function valuesOf(query: CompiledCredentialQuery, credential: PresentedCredential, presentedValues: PresentedValues): JsonObject {
  const match = matchCredential(query, credential, isUndisclosed);
  if (!match.matched) throw new Refusal(match.reason, match.detail);
  return presentedValues === 'requested' ? pickRequested(match, credential, isUndisclosed) : pickDisclosed(credential, isUndisclosed);
}

/** @throws any error other than a Refusal. */
function rejectedBy(
  error: unknown,
  { trust }: VerificationContext,
  position: Pick<CheckedPresentation, 'queryId' | 'index' | 'format' | 'inputs' | 'isTrial'>,
): CheckedPresentation {
  if (!(error instanceof Refusal)) throw error;
  const { reason } = error;
  const invalidatesAll = error instanceof NonceRefusal;
  return { ...position, accepted: false, reason, detail: detailOf(error, trust), invalidatesResponse: invalidatesAll };
}

type Ports = { readonly tenantConfigurations: TenantConfigurations; readonly settings: Pick<ServiceSettings, 'publicUrl'> };

type Signer = {
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly key: PublicJwk;
  readonly name: string;
};

/**
 * Rejects a signer whose key the verifying tenant marked as compromised, or the tenant of this service whose authority issued
 * the certificate. This applies regardless of `certificateRevocation`, since no list has to be fetched.
 * @throws Refusal `certificate_revoked`.
 */
async function assertSignerNotCompromised(
  { tenantConfigurations, settings }: Ports,
  tenant: TenantConfiguration,
  { chain, key, name }: Signer,
): Promise<void> {
  const id = thumbprint(key);
  const otherTenants = issuersOf(chain[0] ?? '', settings.publicUrl).filter((otherTenant) => otherTenant !== tenant.tenantId);
  const owners = await Promise.all(otherTenants.map((tenantId) => tenantConfigurations.readStored(tenantId)));
  for (const owner of [tenant, ...owners]) {
    const compromisedSince = owner === undefined ? undefined : (await compromisedKeysOf(owner)).get(id);
    if (compromisedSince === undefined) continue;
    throw new Refusal('certificate_revoked', `${name}: keyCompromise since ${compromisedSince.toISOString()}`);
  }
}

/** A certificate of an internal CA contains the address of its revocation list at this service. */
function issuersOf(certificate: string, publicUrl: string): readonly TenantId[] {
  try {
    const addresses = revocationSourcesOf(certificate).points.flat();
    const tenants = addresses.flatMap((uri) => parseInternalRevocationList(uri, publicUrl)?.tenantId ?? []);
    return [...new Set(tenants)].slice(0, 1);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return [];
  }
}
