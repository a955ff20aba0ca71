import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import { checkDeviceTransactionData } from '../../domain/formats/mdoc/transaction-data.ts';
import { isUndisclosed } from '../../domain/formats/sd-jwt/disclosures.ts';
import { NonceRefusal } from '../../domain/formats/sd-jwt/key-binding.ts';
import { readCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import type { VerificationRequest } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import { SIGNING_ALGORITHMS } from '../../domain/shared/jwk.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { StatusReference } from '../../domain/status-lists/reference.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import type { CertificateRevocation } from '../../domain/verification/certificate-revocation.ts';
import type { CompiledCredentialQuery } from '../../domain/verification/dcql/compile.ts';
import { matchCredential, type PresentedCredential } from '../../domain/verification/dcql/match.ts';
import { pickRequested } from '../../domain/verification/dcql/pick.ts';
import { readVpToken } from '../../domain/verification/dcql/vp-token.ts';
import { withoutForeignIss } from '../../domain/verification/presented-issuer.ts';
import { PRESENTATION_ALGORITHMS } from '../../domain/verification/request-object.ts';
import {
  deviceTransactionData,
  keyBoundTransactionData,
} from '../../domain/verification/transaction-data.ts';
import { type CheckedPresentation, judge, type Verdict } from '../../domain/verification/verdict.ts';
import { needs } from '../needs.ts';
import { Certificates } from '../ports/certificates.ts';
import { Signatures } from '../ports/signatures.ts';
import { RevocationChecker } from '../revocation/check-revocation.ts';
import { StatusChecker } from '../status-lists/check-status.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { credentialInputs, detailOf, issuerOf, requestInputs } from './check-inputs.ts';
import { type CheckedMdoc, checkMdoc } from './check-mdoc.ts';
import { type CheckedSdJwtVc, checkSdJwtVc } from './check-sd-jwt-vc.ts';
import { compiledQuery } from './compiled-query.ts';
import { type IssuerTrust, IssuerTrusts, revokersOf } from './issuer-trust.ts';
import { authorityOf, demandedLists, type TrustedChain } from './trusted-authorities.ts';

/** What of a request its answer is held against. */
export type AnsweredRequest = Pick<
  VerificationRequest,
  'dcqlQuery' | 'nonce' | 'transactionData' | 'transactionDataObjects' | 'transactionDataElements'
>;

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
};

/** More presentations than any wallet sends; each costs two signatures. */
const MAX_PRESENTATIONS = 100;

/** Verifies what a wallet presents, from the bytes to the values that were asked for. */
export class PresentationVerifier extends needs({
  signatures: Signatures,
  certificates: Certificates,
  revocationChecker: RevocationChecker,
  statusChecker: StatusChecker,
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
    const checked: CheckedPresentation[] = [];
    for (const { id, text, index } of presented) {
      const own = query.credentials.get(id);
      if (own !== undefined) checked.push(await this.#check(task, own, text, index));
    }
    return judge(query, checked, request.transactionData ?? []);
  }

  /** OpenID4VP 1.0 section 8.6: a bad presentation is discarded, the others count. */
  async #check(
    task: Task,
    query: CompiledCredentialQuery,
    text: string,
    index: number,
  ): Promise<CheckedPresentation> {
    const isMdoc = query.format === 'mso_mdoc';
    const format = isMdoc ? 'mso_mdoc' : 'dc+sd-jwt';
    const place = { queryId: query.id, index, format } as const;
    let inputs = requestInputs(task, query);
    try {
      const verified = isMdoc ? this.#openMdoc(task, query, text) : this.#openSdJwtVc(task, query, text);
      inputs = { ...inputs, ...credentialInputs(task, verified) };
      const asked = await this.#checkRevocation(task, verified);
      if (asked !== undefined) inputs = { ...inputs, 'certificate revocation': asked };
      await this.#checkStatus(task, query, verified);
      const authority = authorityOf(
        this.ports.certificates,
        task.trust,
        query.authorities,
        verified,
        task.now,
      );
      const credential = { ...verified.credential, authority };
      const values = valuesOf(query, credential);
      const { confirmed, signedHash } = verified;
      const issuer = issuerOf(task, verified);
      return { ...place, inputs, accepted: true, values, issuer, signedHash, confirmed };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { reason } = error;
      const spoilsAll = error instanceof NonceRefusal;
      const detail = detailOf(error, task.trust);
      return { ...place, inputs, accepted: false, reason, detail, spoilsAll };
    }
  }

  #openSdJwtVc(task: Task, query: CompiledCredentialQuery, text: string): Verified {
    const { request, binding, requestedAt, trust, now } = task;
    const checked = checkSdJwtVc(this.ports, text, {
      now,
      requestedAt,
      nonce: request.nonce,
      audience: binding.audience,
      ...keyBoundTransactionData(request, query.id),
      anchors: trust.anchors,
      holderBinding: query.holderBindingRequired,
      sdJwtAlgorithms: PRESENTATION_ALGORITHMS,
      kbAlgorithms: PRESENTATION_ALGORITHMS,
    });
    return {
      issuer: checked.issuer,
      chain: readCertificateChain(checked.header),
      purpose: 'SD-JWT VC',
      signedHash: checked.signedHash,
      statusReference: checked.statusReference,
      confirmed: checked.confirmedTransactionData,
      credential: {
        format: 'dc+sd-jwt',
        types: typesOf(checked),
        holderBound: checked.holderKey !== undefined,
        claims: withoutForeignIss(checked.claims, checked.issuer.names),
        alwaysVisible: withoutForeignIss(checked.alwaysVisible, checked.issuer.names),
      },
    };
  }

  #openMdoc(task: Task, query: CompiledCredentialQuery, text: string): Verified {
    const { request, now, binding, trust, mdlProfile } = task;
    const [docType = ''] = query.types;
    const checked = checkMdoc(this.ports, text, {
      now,
      anchors: trust.anchors,
      transcripts: binding.transcripts(),
      docType,
      ...defined({ mdlProfile }),
      holderBinding: query.holderBindingRequired,
      issuerAlgorithms: SIGNING_ALGORITHMS,
      deviceAlgorithms: SIGNING_ALGORITHMS,
    });
    const transactionData = deviceTransactionData(request, query.id);
    return {
      issuer: checked.issuer,
      chain: checked.chain,
      purpose: 'mdoc',
      signedHash: checked.signedHash,
      statusReference: checked.statusReference,
      confirmed: checkDeviceTransactionData(checked.deviceSigned, transactionData),
      credential: {
        format: 'mso_mdoc',
        types: [checked.docType],
        holderBound: checked.holderKey !== undefined,
        claims: checked.namespaces,
        alwaysVisible: {},
      },
    };
  }

  /** After everything that needs no call: who presents what is not its own has nobody called. */
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
    const { configured, trust } = task;
    const checkSigner = (signer: readonly string[], verdict: Verified['issuer']) =>
      this.#checkRevocation(task, { chain: signer, issuer: verdict }, 'signer of the status list');
    const revocation = revokersOf(trust, issuer.anchor, demandedLists(authorities));
    const forms = credential.format === 'mso_mdoc' ? 'jwt-or-cwt' : 'jwt';
    const signers = { chain, issuer, anchors: trust.anchors, purpose, revocation, checkSigner };
    await this.ports.statusChecker.check({ configured, reference: statusReference, forms, ...signers });
  }
}

/** What both formats come to. */
type Verified = Pick<CheckedMdoc, 'issuer' | 'signedHash'> &
  TrustedChain & {
    readonly statusReference: StatusReference | undefined;
    /** Entries of `transaction_data`. */
    readonly confirmed: readonly string[];
    readonly credential: Omit<PresentedCredential, 'authority'>;
  };

async function rulesOf(
  configured: TenantConfiguration,
  configurationId: string | undefined,
): Promise<Pick<Task, 'mdlProfile' | 'certificateRevocation'>> {
  const configuration =
    configurationId === undefined ? undefined : await configured.presentationConfiguration(configurationId);
  const { mdlProfile, certificateRevocation } = configuration ?? {};
  return { mdlProfile: mdlProfile ?? undefined, certificateRevocation: certificateRevocation ?? 'off' };
}

function valuesOf(query: CompiledCredentialQuery, credential: PresentedCredential): JsonObject {
  const match = matchCredential(query, credential, isUndisclosed);
  if (!match.matched) throw new Refusal(match.reason, match.detail);
  return pickRequested(match, credential, isUndisclosed);
}

/** SD-JWT VC section 2.2.2.2: the issuer itself says which other types the credential is. */
function typesOf({ vct, alwaysVisible }: CheckedSdJwtVc): readonly string[] {
  const others = alwaysVisible['aka_vcts'];
  return Array.isArray(others) ? [vct, ...others.filter((type) => typeof type === 'string')] : [vct];
}
