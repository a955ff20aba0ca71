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
import { withoutForeignIss } from '../../domain/verification/presented-issuer.ts';
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

/** What of a request its answer is held against. */
export type AnsweredRequest = Pick<
  VerificationRequest,
  'dcqlQuery' | 'nonce' | 'transactionData' | 'transactionDataObjects' | 'transactionDataElements' | 'transactionDataSchemas' | 'policy'
> & { readonly responseMode?: string };

/** What a presentation is held against. */
export type Opening = {
  readonly request: AnsweredRequest;
  readonly binding: Binding;
  readonly requestedAt: Date;
  readonly trust: IssuerTrust;
  readonly mdlProfile: MdlProfile | undefined;
  /** Whether HAIP 1.0 is held to. */
  readonly haip: boolean;
  /** By which signatures of issuers and holders count. */
  readonly algorithms: PresentationAlgorithms;
  readonly now: Date;
  /** Somebody tries a question: there is no request, so nothing that ties a presentation to one is looked at. */
  readonly isTrial?: true;
};

/** What both formats come to. */
export type Verified = Pick<CheckedMdoc, 'issuer' | 'signedHash'> &
  TrustedChain & {
    readonly statusReference: StatusReference | undefined;
    /** Entries of `transaction_data`. */
    readonly confirmed: readonly string[];
    readonly authentication?: Authentication;
    readonly credential: Omit<PresentedCredential, 'authority'>;
  };

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

/** @throws Refusal for a presentation that is not of the query's format or does not hold. Nobody is called. */
export function verifyOffline(ports: Ports, opening: Opening, query: CompiledCredentialQuery, text: string): Verified {
  return query.format === 'mso_mdoc' ? verifyMdocOffline(ports, opening, query, text) : verifySdJwtVcOffline(ports, opening, query, text);
}

function verifySdJwtVcOffline(ports: Ports, opening: Opening, query: CompiledCredentialQuery, text: string): Verified {
  const { request, binding, requestedAt, trust, haip, algorithms, now, isTrial } = opening;
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
  assertCounted(trust, { ...checked, chain, issuedAt: issuedAt(checked.alwaysVisible) }, now);
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
      claims: withoutForeignIss(checked.claims, checked.issuer.names),
      alwaysVisible: withoutForeignIss(checked.alwaysVisible, checked.issuer.names),
    },
  };
}

function verifyMdocOffline(ports: Ports, opening: Opening, query: CompiledCredentialQuery, text: string): Verified {
  const { request, now, binding, trust, haip, algorithms, mdlProfile, isTrial } = opening;
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
  assertCounted(trust, { ...checked, issuedAt: checked.validity.signed }, now);
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

/** SD-JWT VC section 2.2.2.2: the issuer itself says which other types the credential is. */
function typesOf({ vct, alwaysVisible }: CheckedSdJwtVc): readonly string[] {
  const others = alwaysVisible['aka_vcts'];
  if (others === undefined) return [vct];
  // SD-JWT VC section 2.2.2.2: texts, at least one of them, and none that is the type itself
  const isText = (type: unknown): type is string => typeof type === 'string' && type !== '' && type !== vct;
  if (!Array.isArray(others) || others.length === 0 || !others.every(isText)) throw new Refusal('malformed', 'aka_vcts');
  return [vct, ...others];
}

/** How far the clock of an issuer may be ahead. */

type Issued = {
  readonly issuer: Extract<ChainVerdict, { trusted: true }>;
  /** DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  readonly issuedAt: Date | undefined;
};

/** RFC 7519 section 4.1.6, where every presentation shows it: what the holder may leave out tells nothing. */
export function issuedAt({ iat }: JsonObject): Date | undefined {
  if (typeof iat !== 'number' || !Number.isFinite(iat)) return undefined;
  const time = new Date(iat * 1000);
  return Number.isNaN(time.getTime()) ? undefined : time;
}

/**
 * Where the status of a service counts as it was at the time of issuance (TS 119 612 section 5.6): that time has to be told, to
 * have come, to lie within the life of the certificate that signed, and in a period in which the service stood as it has to.
 * @throws Refusal `untrusted_chain`.
 */
export function assertCounted({ dated }: IssuerTrust, { issuer, chain, issuedAt: time }: Issued, now: Date): void {
  const periods = dated.get(issuer.anchor);
  if (periods === undefined) return;
  if (time === undefined) throw new Refusal('untrusted_chain', 'it does not say when it was issued');
  const signer = parseCertificate(Buffer.from(chain[0] ?? '', 'base64'));
  const isPlausible =
    signer !== undefined && time.getTime() <= now.getTime() + CLOCK_TOLERANCE_MS && time >= signer.notBefore && time <= signer.notAfter;
  if (!isPlausible) throw new Refusal('untrusted_chain', 'its time of issuance is not that of its signer');
  if (!isWithin(periods, time)) throw new Refusal('untrusted_chain', 'the service of its issuer was not approved when it was issued');
}
