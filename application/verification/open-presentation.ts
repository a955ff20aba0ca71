import type { MdlProfile } from '../../domain/formats/mdoc/driving-licence.ts';
import { checkDeviceTransactionData } from '../../domain/formats/mdoc/transaction-data.ts';
import { readCertificateChain } from '../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import type { VerificationRequest } from '../../domain/sessions/session.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { StatusReference } from '../../domain/status-lists/reference.ts';
import type { Binding } from '../../domain/verification/binding.ts';
import type { CompiledCredentialQuery } from '../../domain/verification/dcql/compile.ts';
import type { PresentedCredential } from '../../domain/verification/dcql/match.ts';
import { withoutForeignIss } from '../../domain/verification/presented-issuer.ts';
import type { PresentationAlgorithms } from '../../domain/verification/request-object.ts';
import type { Authentication } from '../../domain/verification/sca/authentication.ts';
import {
  deviceTransactionData,
  keyBoundTransactionData,
} from '../../domain/verification/transaction-data.ts';
import type { Certificates } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';
import { type CheckedMdoc, checkMdoc } from './check-mdoc.ts';
import { type CheckedSdJwtVc, checkSdJwtVc } from './check-sd-jwt-vc.ts';
import { assertCounted, issuedAt } from './issued-in-time.ts';
import type { IssuerTrust } from './issuer-trust.ts';
import type { TrustedChain } from './trusted-authorities.ts';

/** What of a request its answer is held against. */
export type AnsweredRequest = Pick<
  VerificationRequest,
  | 'dcqlQuery'
  | 'nonce'
  | 'transactionData'
  | 'transactionDataObjects'
  | 'transactionDataElements'
  | 'transactionDataSchemas'
  | 'policy'
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
export function openPresentation(
  ports: Ports,
  opening: Opening,
  query: CompiledCredentialQuery,
  text: string,
): Verified {
  return query.format === 'mso_mdoc'
    ? openMdoc(ports, opening, query, text)
    : openSdJwtVc(ports, opening, query, text);
}

function openSdJwtVc(ports: Ports, opening: Opening, query: CompiledCredentialQuery, text: string): Verified {
  const { request, binding, requestedAt, trust, haip, algorithms, now, isTrial } = opening;
  const checked = checkSdJwtVc(ports, text, {
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
  const chain = readCertificateChain(checked.header);
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

function openMdoc(ports: Ports, opening: Opening, query: CompiledCredentialQuery, text: string): Verified {
  const { request, now, binding, trust, haip, algorithms, mdlProfile, isTrial } = opening;
  const [docType = ''] = query.types;
  const checked = checkMdoc(ports, text, {
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

/** SD-JWT VC section 2.2.2.2: the issuer itself says which other types the credential is. */
function typesOf({ vct, alwaysVisible }: CheckedSdJwtVc): readonly string[] {
  const others = alwaysVisible['aka_vcts'];
  if (others === undefined) return [vct];
  // SD-JWT VC section 2.2.2.2: texts, at least one of them, and none that is the type itself
  const isText = (type: unknown): type is string => typeof type === 'string' && type !== '' && type !== vct;
  if (!Array.isArray(others) || others.length === 0 || !others.every(isText))
    throw new Refusal('malformed', 'aka_vcts');
  return [vct, ...others];
}
