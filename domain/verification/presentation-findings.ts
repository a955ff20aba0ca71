import type { DcqlQuery } from '../dcql/query.ts';
import { keyIdentifierOf, parseCertificate } from '../formats/der/certificate.ts';
import { parsePemCertificates } from '../formats/der/pem.ts';
import { type Finding, includesProfile, type Profile } from '../shared/finding.ts';
import { findInvocationProblems, invocationUri, MAX_QR_LENGTH } from '../shared/invocation-uri.ts';
import type { JsonObject } from '../shared/json.ts';
import type { PresentationConfigurationBody } from './configuration.ts';
import { encodeTransactionData, INVOCATION_URI, postedParameters, redirectUriClientId, requestParameters } from './request-object.ts';
import { OWN_AUTHORITIES } from './trust-anchor.ts';

type CredentialQuery = DcqlQuery['credentials'][number];

const BY_HAIP = { concerns: 'wallets that follow HAIP 1.0, such as the European Digital Identity Wallet', refusedBy: ['haip'] } as const;

/** Warnings about requests that wallets reject, or that prove less than intended. */
export function findPresentationProblems(configuration: PresentationConfigurationBody, profile: Profile | null): Finding[] {
  return [
    ...findRequestProblems(configuration),
    ...findInvocationProblems('invocationUri', configuration.invocationUri),
    ...findQueryProblems(configuration),
    ...findAuthorityProblems(configuration),
    ...findTrustProblems(configuration),
    ...findConfirmationProblems(configuration),
    ...(includesProfile(profile, 'eu') ? findRegistrationProblems(configuration) : []),
  ];
}

function findRequestProblems(configuration: PresentationConfigurationBody): Finding[] {
  const { responseMode, clientIdPrefix, redirectUri, requireResponseCode } = configuration;
  const findings: Finding[] = [];
  if (responseMode === 'direct_post') {
    findings.push({
      ...BY_HAIP,
      profileRule: 'HAIP 1.0 sections 5.1 and 5.2',
      member: 'responseMode',
      message: 'answers are not encrypted',
      change: 'leave it direct_post.jwt',
    });
  }
  if (clientIdPrefix !== 'x509_hash') {
    findings.push({
      ...BY_HAIP,
      profileRule: 'HAIP 1.0 section 5',
      member: 'clientIdPrefix',
      message: `requests identify the verifier by ${clientIdPrefix}`,
      change: 'leave it x509_hash',
    });
  }
  const length = unsignedLinkLength(configuration) ?? 0;
  if (length > MAX_QR_LENGTH) {
    findings.push({
      rule: 'OpenID4VP 1.0 section 3.2',
      member: 'clientIdPrefix',
      concerns: 'users whose wallet is on another device than the browser',
      message: `the link has about ${length} characters; above ${MAX_QR_LENGTH} no QR code is made, so no wallet on another device can scan it`,
      change: 'use x509_hash, whose requests are fetched by reference, or request fewer claims',
    });
  }
  if (requireResponseCode === false) {
    findings.push({
      ...BY_HAIP,
      rule: 'OpenID4VP 1.0 section 14.3',
      profileRule: 'HAIP 1.0 section 5.1',
      member: 'requireResponseCode',
      concerns: 'users who follow a link that an attacker sends them',
      message: 'a result is accepted although the browser that started the request never returned',
      change: 'leave it out, or set it to true',
    });
  }
  if (redirectUri === null || redirectUri === undefined) {
    findings.push({
      rule: 'OpenID4VP 1.0 section 14.3',
      profileRule: 'HAIP 1.0 section 5.1',
      member: 'redirectUri',
      concerns: 'users who follow a link that an attacker sends them: nothing verifies that they started the transaction themselves',
      message: 'the browser does not return after a presentation on the same device',
      change: 'set it here or in the request; with requireResponseCode nothing counts before it came back',
    });
  }
  return findings;
}

/** Placeholders of typical length for values that exist only when a request is created. */
const PLACEHOLDERS = {
  nonce: 'n'.repeat(43),
  state: 's'.repeat(43),
  responseUri: `https://verifier.example/tenant/response/${'r'.repeat(22)}`,
  encryptionJwk: { kty: 'EC', crv: 'P-256', x: 'x'.repeat(43), y: 'y'.repeat(43), kid: 'k'.repeat(43), alg: 'ECDH-ES', use: 'enc' },
} as const;

/**
 * An unsigned request is part of the link, which easily becomes too long for a QR code.
 * @returns the approximate length of its link; undefined for a request by reference.
 */
function unsignedLinkLength(configuration: PresentationConfigurationBody): number | undefined {
  if (configuration.clientIdPrefix !== 'redirect_uri') return undefined;
  const { responseMode, dcql_query, transaction_data, invocationUri: base = INVOCATION_URI } = configuration;
  const { nonce, state, responseUri, encryptionJwk } = PLACEHOLDERS;
  const parameters = requestParameters({
    responseMode,
    nonce,
    dcqlQuery: dcql_query as unknown as JsonObject,
    transactionData: encodeTransactionData((transaction_data ?? []) as unknown as JsonObject[]),
    encryptionJwk: responseMode === 'direct_post.jwt' ? encryptionJwk : undefined,
    display: configuration,
  });
  const clientId = redirectUriClientId(responseUri);
  return invocationUri(base, postedParameters(parameters, { clientId, responseUri, state })).length;
}

function findQueryProblems({ dcql_query: { credentials } }: PresentationConfigurationBody): Finding[] {
  return [...findBindingProblems(credentials), ...credentials.flatMap(findUnrequestedClaimProblems)];
}

const HEXADECIMAL = /^(?:[0-9a-f]{2}:?){15,}[0-9a-f]{2}$/i;

/** Key identifiers that match no anchor. If all anchors are certificates, this can be decided from the configuration alone. */
function findAuthorityProblems({ trustAnchors = [], dcql_query: { credentials } }: PresentationConfigurationBody): Finding[] {
  const anchors = trustAnchors.map((anchor) => ('certificate' in anchor ? keyIdentifierIn(anchor.certificate) : undefined));
  const isComplete = anchors.length > 0 && !anchors.includes(undefined);
  return credentials.flatMap(({ trusted_authorities = [] }, index) =>
    trusted_authorities.flatMap(({ type, values }, position): Finding[] => {
      if (type !== 'aki' || values.some((value) => anchors.includes(value))) return [];
      const isHexadecimal = values.some((value) => HEXADECIMAL.test(value));
      if (!isHexadecimal && !isComplete) return [];
      return [
        {
          rule: 'OpenID4VP 1.0 section 6.1.1.1',
          member: `dcql_query.credentials.${index}.trusted_authorities.${position}`,
          concerns: 'the verifier itself, which rejects every presentation that no such authority issued',
          message: isHexadecimal
            ? 'a key identifier looks hexadecimal; aki takes base64url'
            : 'no trust anchor has one of these key identifiers',
          change: isHexadecimal
            ? 'encode the bytes of the key identifier in base64url'
            : 'name the key identifier of an anchor, or of an intermediate authority below one',
        },
      ];
    }),
  );
}

function keyIdentifierIn(pem: string): string | undefined {
  const [der] = parsePemCertificates(pem, 1) ?? [];
  const certificate = der === undefined ? undefined : parseCertificate(Buffer.from(der, 'base64'));
  return certificate && keyIdentifierOf(certificate);
}

/** A wallet selects one of the `claim_sets`; a claim in none of them is never sent. */
function findUnrequestedClaimProblems({ claims = [], claim_sets }: CredentialQuery, index: number): Finding[] {
  if (claim_sets === undefined) return [];
  const namedIds = new Set(claim_sets.flat());
  return claims.flatMap(({ id }, position) =>
    id === undefined || namedIds.has(id)
      ? []
      : [
          {
            rule: 'OpenID4VP 1.0 section 6.4.1',
            member: `dcql_query.credentials.${index}.claims.${position}`,
            concerns: 'wallets, some of which reject the whole request, and backends that wait for the claim',
            message: `no claim_sets names "${id}", so it is never requested`,
            change: 'add it to a set, or remove the claim',
          },
        ],
  );
}

function findBindingProblems(credentials: readonly CredentialQuery[]): Finding[] {
  return credentials.flatMap(({ require_cryptographic_holder_binding: binding }, index) =>
    binding === false
      ? [
          {
            ...BY_HAIP,
            rule: 'OpenID4VP 1.0 section 14.1.1',
            profileRule: 'HAIP 1.0 section 6.1.1.1',
            member: `dcql_query.credentials.${index}.require_cryptographic_holder_binding`,
            concerns: 'the verifier itself',
            message: 'anyone with a copy of the credential can present it',
            change: 'leave it out',
          },
        ]
      : [],
  );
}

function findTrustProblems({ trustAnchors = [OWN_AUTHORITIES], mdlProfile }: PresentationConfigurationBody): Finding[] {
  const findings: Finding[] = trustAnchors.flatMap((anchor, index) =>
    'certificate' in anchor && (anchor.pin === true || isEndEntity(anchor.certificate))
      ? [
          {
            ...BY_HAIP,
            rule: 'RFC 5280 section 6.1',
            profileRule: 'HAIP 1.0 section 6.1.1',
            member: `trustAnchors.${index}.certificate`,
            concerns: 'issuers that change their certificate, and the verifier',
            message: 'an issuer is trusted by its own certificate, in place of an authority that can revoke it',
            change: 'name the CA that issued it',
          },
        ]
      : [],
  );
  if (trustAnchors.length === 0) {
    findings.push({
      rule: 'OpenID4VP 1.0 section 14',
      member: 'trustAnchors',
      concerns: 'the verifier itself',
      message: 'the list is empty, so no issuer is trusted and every credential is rejected',
      change: 'add an anchor, or remove trustAnchors to trust the authorities of the tenant',
    });
  }
  if (mdlProfile === 'none') {
    findings.push({
      rule: 'ISO/IEC 18013-5 sections 9.3.1 and B.1.4',
      member: 'mdlProfile',
      concerns: 'the verifier itself',
      message: 'any certificate under an anchor can sign driving licences',
      change: 'leave it out',
    });
  }
  return findings;
}

/** True for an end-entity certificate, which signs credentials and is no CA. */
function isEndEntity(pem: string): boolean {
  const [der] = parsePemCertificates(pem, 1) ?? [];
  const certificate = der === undefined ? undefined : parseCertificate(Buffer.from(der, 'base64'));
  return certificate !== undefined && certificate.basicConstraints?.ca !== true;
}

function findConfirmationProblems({ transaction_data, dcql_query }: PresentationConfigurationBody): Finding[] {
  const mdocs = new Set(dcql_query.credentials.filter(({ format }) => format === 'mso_mdoc').map(({ id }) => id));
  return (transaction_data ?? []).flatMap(({ credential_ids }, index) =>
    credential_ids.some((id) => mdocs.has(id))
      ? [
          {
            rule: 'OpenID4VP 1.0 appendix B.2.1',
            member: `transaction_data.${index}.credential_ids`,
            concerns: 'wallets, most of which only confirm transactions by SD-JWT VC',
            message: 'a transaction that an mdoc has to confirm is rejected',
            change: 'use a query for dc+sd-jwt to confirm it',
          },
        ]
      : [],
  );
}

function findRegistrationProblems({ registrationCert, attached }: PresentationConfigurationBody): Finding[] {
  const attachedCertificates = (attached ?? []).flatMap(({ format }, index) =>
    format === 'registration_cert' ? [`attached.${index}`] : [],
  );
  if (attachedCertificates.length > 0) {
    return attachedCertificates.map((member) => ({
      profileRule: 'ARF 3.0 RPRC_09 and RPRC_19',
      member,
      concerns: 'the European Digital Identity Wallet, which accepts one registration certificate',
      message: 'a registration certificate is attached in addition to that of the request, and its coverage is not checked',
      change: 'name it in registrationCert as {"jwt": …}, one for each intended use',
      refusedBy: ['eu'],
    }));
  }
  if (registrationCert !== null && registrationCert !== undefined) return [];
  return [
    {
      profileRule: 'ARF 3.0 RPRC_19, ETSI TS 119 472-2 section 6.3.2.2',
      member: 'registrationCert',
      concerns: 'the European Digital Identity Wallet, which warns its user',
      message: 'requests do not contain the registration of the relying party',
      change: 'let the registrar issue it with {"body": {}}, or send it as {"jwt": …}',
      refusedBy: ['eu'],
    },
  ];
}
