import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import { type DisclosedObject, isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import { NonceRefusal, Refusal } from '../../domain/shared/refusal.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import type { CertificateRevocation } from '../../domain/verification/certificate-revocation.ts';
import type { PresentedValues } from '../../domain/verification/configuration.ts';
import type { CompiledCredentialQuery } from '../../domain/verification/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../domain/verification/dcql/match.ts';
import { pickDisclosed, pickRequested } from '../../domain/verification/dcql/pick.ts';
import { readVpToken } from '../../domain/verification/dcql/vp-token.ts';
import {
  type PresentationAlgorithms,
  presentationAlgorithms,
} from '../../domain/verification/request-object.ts';
import { type CheckedPresentation, judge, type Verdict } from '../../domain/verification/verdict.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Signatures } from '../ports/signatures.ts';
import { RevocationChecker } from '../revocation/check-revocation.ts';
import { StatusChecker } from '../status-lists/check-status.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { credentialInputs, detailOf, issuerOf, requestInputs } from './check-inputs.ts';
import { compiledQuery } from './compiled-query.ts';
import { holdsToAgreed, holdsToHaip } from './haip.ts';
import { type IssuerTrust, IssuerTrusts, revokersOf } from './issuer-trust.ts';
import { type AnsweredRequest, openPresentation, type Verified } from './open-presentation.ts';
import { authorityOf, demandedLists } from './trusted-authorities.ts';
import { TypeMetadata } from './type-metadata.ts';

export type { AnsweredRequest } from './open-presentation.ts';

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

type Task = PresentationsToVerify & {
  readonly trust: IssuerTrust;
  readonly mdlProfile: MdlProfile | undefined;
  readonly certificateRevocation: CertificateRevocation;
  /** Whether credentials are held against the metadata of their types. */
  readonly holdsToTypes: boolean;
  readonly haip: boolean;
  readonly algorithms: PresentationAlgorithms;
  readonly values: PresentedValues;
};

/** A presentation after everything that needs no call; `verified` when it holds so far. */
type Looked =
  | { readonly checked: Accepted; readonly verified: Verified }
  | { readonly checked: CheckedPresentation; readonly verified?: undefined };
type Accepted = Extract<CheckedPresentation, { accepted: true }>;

/** More presentations than any wallet sends; each costs two signatures. */
const MAX_PRESENTATIONS = 100;

/** Verifies what a wallet presents, from the bytes to the values that were asked for. */
export class PresentationVerifier extends needs({
  signatures: Signatures,
  certificates: Certificates,
  revocationChecker: RevocationChecker,
  statusChecker: StatusChecker,
  typeMetadata: TypeMetadata,
  issuerTrusts: IssuerTrusts,
}) {
  /** @throws Refusal `malformed` when the `vp_token` as a whole does not have its form. */
  async verify(wanted: PresentationsToVerify): Promise<Verdict> {
    const { request, vpToken, configured, configurationId } = wanted;
    const query = await compiledQuery(configured, configurationId, request.dcqlQuery);
    const presented = [...readVpToken(vpToken, query)].flatMap(([id, texts]) =>
      // OpenID4VP 1.0 section 6.4.2: what was not requested is not looked at.
      query.requested.has(id) ? texts.map((text, index) => ({ id, text, index })) : [],
    );
    if (presented.length > MAX_PRESENTATIONS) throw new Refusal('malformed', 'too many presentations');
    const trust = await this.ports.issuerTrusts.of(configured, configurationId);
    const task = { ...wanted, trust, ...(await rulesOf(configured, configurationId)) };
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
    return judge(query, checked, request.transactionData ?? []);
  }

  /** OpenID4VP 1.0 section 8.6: a bad presentation is discarded, the others count. */
  #look(task: Task, query: CompiledCredentialQuery, text: string, index: number): Looked {
    const format = query.format === 'mso_mdoc' ? 'mso_mdoc' : 'dc+sd-jwt';
    const place = { queryId: query.id, index, format } as const;
    let inputs = requestInputs(task, query);
    try {
      const { ports } = this;
      const verified = openPresentation(ports, task, query, text);
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
  async #ask(
    task: Task,
    query: CompiledCredentialQuery,
    verified: Verified,
    checked: Accepted,
  ): Promise<CheckedPresentation> {
    let { inputs } = checked;
    const { queryId, index, format } = checked;
    try {
      const { claims, alwaysVisible } = verified.credential;
      if (task.holdsToTypes && format === 'dc+sd-jwt') {
        inputs = { ...inputs, 'type metadata': String(alwaysVisible['vct']) };
        await this.ports.typeMetadata.check(
          task.configured,
          claims as DisclosedObject,
          alwaysVisible as JsonObject,
        );
      }
      const asked = await this.#checkRevocation(task, verified);
      if (asked !== undefined) inputs = { ...inputs, 'certificate revocation': asked };
      await this.#checkStatus(task, query, verified);
      return { ...checked, inputs };
    } catch (error) {
      return refusedBy(error, task, { queryId, index, format, inputs });
    }
  }

  #checkRevocation(
    { configured, certificateRevocation: mode }: Task,
    { chain, issuer }: Pick<Verified, 'chain' | 'issuer'>,
    signer = 'signer',
  ) {
    return this.ports.revocationChecker.check({ tenantId: configured.tenantId, mode, chain, issuer, signer });
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
    await this.ports.statusChecker.check({
      configured,
      reference: statusReference,
      forms,
      haip,
      agreedOnly,
      ...signers,
    });
  }
}

async function rulesOf(
  configured: TenantConfiguration,
  configurationId: string | undefined,
): Promise<
  Pick<Task, 'mdlProfile' | 'certificateRevocation' | 'haip' | 'algorithms' | 'values' | 'holdsToTypes'>
> {
  const configuration =
    configurationId === undefined ? undefined : await configured.presentationConfiguration(configurationId);
  const { mdlProfile, certificateRevocation, values, typeMetadata } = configuration ?? {};
  const haip = holdsToHaip(configured);
  return {
    mdlProfile: mdlProfile ?? undefined,
    certificateRevocation: certificateRevocation ?? 'off',
    haip,
    algorithms: presentationAlgorithms(holdsToAgreed(configured)),
    values: values ?? 'disclosed',
    holdsToTypes: typeMetadata === 'enforced',
  };
}

function valuesOf(
  query: CompiledCredentialQuery,
  credential: PresentedCredential,
  wanted: PresentedValues,
): JsonObject {
  const match = matchCredential(query, credential, isUndisclosed);
  if (!match.matched) throw new Refusal(match.reason, match.detail);
  return wanted === 'requested'
    ? pickRequested(match, credential, isUndisclosed)
    : pickDisclosed(credential, isUndisclosed);
}

/** @throws what is no refusal. */
function refusedBy(
  error: unknown,
  { trust }: Task,
  place: Pick<CheckedPresentation, 'queryId' | 'index' | 'format' | 'inputs'>,
): CheckedPresentation {
  if (!(error instanceof Refusal)) throw error;
  const { reason } = error;
  const spoilsAll = error instanceof NonceRefusal;
  return { ...place, accepted: false, reason, detail: detailOf(error, trust), spoilsAll };
}
