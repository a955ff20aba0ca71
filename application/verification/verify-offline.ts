import type { CompiledCredentialQuery } from '../../domain/dcql/compile.ts';
import type { PresentedCredential } from '../../domain/dcql/match.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import { verifyDeviceTransactionData } from '../../domain/formats/mdoc/transaction-data.ts';
import { parseCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { CLOCK_TOLERANCE_MS } from '../../domain/shared/clock-tolerance.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { StatusReference } from '../../domain/status-lists/reference.ts';
import { isWithin } from '../../domain/trust-lists/service-history.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import { withoutUncertifiedIss } from '../../domain/verification/presented-issuer.ts';
import type { PresentationAlgorithms } from '../../domain/verification/request-object.ts';
import type { Authentication } from '../../domain/verification/sca/authentication.ts';
import { deviceTransactionData, keyBoundTransactionData } from '../../domain/verification/transaction-data.ts';
import type { VerificationRequest } from '../../domain/verification/verification-request.ts';
import type { Certificates, ChainVerdict } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { IssuerTrust } from './issuer-trust.ts';
import type { TrustedChain } from './trusted-authorities.ts';
import { type CheckedMdoc, verifyMdoc } from './verify-mdoc.ts';
import { type CheckedSdJwtVc, verifySdJwtVc } from './verify-sd-jwt-vc.ts';

/** The parts of a request that its response is verified against. */
export type AnsweredRequest = Pick<
  VerificationRequest,
  'dcqlQuery' | 'nonce' | 'transactionData' | 'transactionDataObjects' | 'transactionDataElements' | 'transactionDataSchemas' | 'policy'
> & { readonly responseMode?: string };

export type OfflineContext = {
  readonly request: AnsweredRequest;
  readonly binding: Binding;
  readonly requestedAt: Date;
  readonly trust: IssuerTrust;
  readonly mdlProfile: MdlProfile | undefined;
  /** Applies HAIP 1.0. */
  readonly haip: boolean;
  /** Accepted signature algorithms of issuers and holders. */
  readonly algorithms: PresentationAlgorithms;
  readonly now: Date;
  /** True for a test of a query without a request: the binding to a request is not checked. */
  readonly isTrial?: true;
};

/** Common result of both formats. */
export type VerifiedPresentation = Pick<CheckedMdoc, 'issuer' | 'signedHash'> &
  TrustedChain & {
    readonly statusReference: StatusReference | undefined;
    readonly confirmed: readonly string[];
    readonly authentication?: Authentication;
    readonly credential: Omit<PresentedCredential, 'authority'>;
  };

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

/** @throws Refusal for a presentation of another format or an invalid one. Makes no network call. */
export function verifyOffline(ports: Ports, context: OfflineContext, query: CompiledCredentialQuery, text: string): VerifiedPresentation {
  return query.format === 'mso_mdoc' ? verifyMdocOffline(ports, context, query, text) : verifySdJwtVcOffline(ports, context, query, text);
}

function verifySdJwtVcOffline(ports: Ports, context: OfflineContext, query: CompiledCredentialQuery, text: string): VerifiedPresentation {
  const { request, binding, requestedAt, trust, haip, algorithms, now, isTrial } = context;
  const checked = verifySdJwtVc(ports, text, {
    now,
    requestedAt,
    nonce: request.nonce,
    audience: binding.audience,
    recipients: binding.recipients,
    ...keyBoundTransactionData(request, query.id),
    ...defined({ responseMode: request.responseMode }),
    anchors: trust.withFormer,
    holderBinding: query.holderBindingRequired,
    haip,
    agreedOnly: algorithms.agreedOnly,
    sdJwtAlgorithms: algorithms.jose,
    kbAlgorithms: algorithms.jose,
    ...defined({ isTrial }),
  });
  const chain = parseCertificateChain(checked.header);
  assertTrustedAtIssuance(trust, { ...checked, chain, issuedAt: issuedAt(checked.alwaysVisible) }, now);
  return {
    issuer: checked.issuer,
    chain,
    purpose: 'SD-JWT VC',
    signedHash: checked.signedHash,
    statusReference: checked.statusReference,
    confirmed: checked.confirmedTransactionData,
    ...defined({ authentication: checked.authentication }),
    credential: {
      format: 'dc+sd-jwt',
      types: typesOf(checked),
      holderBound: checked.holderKey !== undefined,
      claims: withoutUncertifiedIss(checked.claims, checked.issuer.names),
      alwaysVisible: withoutUncertifiedIss(checked.alwaysVisible, checked.issuer.names),
    },
  };
}

function verifyMdocOffline(ports: Ports, context: OfflineContext, query: CompiledCredentialQuery, text: string): VerifiedPresentation {
  const { request, now, binding, trust, haip, algorithms, mdlProfile, isTrial } = context;
  const [docType = ''] = query.types;
  const checked = verifyMdoc(ports, text, {
    now,
    anchors: trust.withFormer,
    transcripts: binding.transcripts(),
    docType,
    ...defined({ mdlProfile, isTrial }),
    holderBinding: query.holderBindingRequired,
    haip,
    agreedOnly: algorithms.agreedOnly,
    issuerAlgorithms: algorithms.cose,
    deviceAlgorithms: algorithms.cose,
  });
  const transactionData = deviceTransactionData(request, query.id);
  assertTrustedAtIssuance(trust, { ...checked, issuedAt: checked.validity.signed }, now);
  return {
    issuer: checked.issuer,
    chain: checked.chain,
    purpose: 'mdoc',
    signedHash: checked.signedHash,
    statusReference: checked.statusReference,
    confirmed: verifyDeviceTransactionData(checked.deviceSigned, transactionData),
    credential: {
      format: 'mso_mdoc',
      types: [checked.docType],
      holderBound: checked.holderKey !== undefined,
      claims: checked.namespaces,
      alwaysVisible: {},
    },
  };
}

/** SD-JWT VC section 2.2.2.2: the issuer declares the further types of the credential. */
function typesOf({ vct, alwaysVisible }: CheckedSdJwtVc): readonly string[] {
  const otherTypes = alwaysVisible['aka_vcts'];
  if (otherTypes === undefined) return [vct];
  // SD-JWT VC section 2.2.2.2: texts, at least one of them, and none that is the type itself
  const isText = (type: unknown): type is string => typeof type === 'string' && type !== '' && type !== vct;
  if (!Array.isArray(otherTypes) || otherTypes.length === 0 || !otherTypes.every(isText)) throw new Refusal('malformed', 'aka_vcts');
  return [vct, ...otherTypes];
}

type IssuedCredential = {
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly issuedAt: Date | undefined;
};

/** `iat` (RFC 7519 section 4.1.6) of the always visible claims: a holder could leave out a disclosed one. */
export function issuedAt({ iat }: JsonObject): Date | undefined {
  if (typeof iat !== 'number' || !Number.isFinite(iat)) return undefined;
  const time = new Date(iat * 1000);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/**
 * Checks the time of issuance if it decides about the status of a service (TS 119 612 section 5.6): it must be present, not in the
 * future, within the validity of the signer's certificate, and within a period in which the service had the required status.
 * @throws Refusal `untrusted_chain`.
 */
export function assertTrustedAtIssuance({ dated }: IssuerTrust, { issuer, chain, issuedAt: time }: IssuedCredential, now: Date): void {
  const periods = dated.get(issuer.anchor);
  if (periods === undefined) return;
  if (time === undefined) throw new Refusal('untrusted_chain', 'it has no time of issuance');
  const signer = parseCertificate(Buffer.from(chain[0] ?? '', 'base64'));
  const isPlausible =
    signer !== undefined && time.getTime() <= now.getTime() + CLOCK_TOLERANCE_MS && time >= signer.notBefore && time <= signer.notAfter;
  if (!isPlausible) throw new Refusal('untrusted_chain', 'its time of issuance is outside the validity of its signer');
  if (!isWithin(periods, time)) throw new Refusal('untrusted_chain', 'the service of its issuer was not approved when it was issued');
}
