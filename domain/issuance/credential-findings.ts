import { findContrastProblems } from '../shared/contrast.ts';
import type { Finding, Profile } from '../shared/finding.ts';
import { isJsonObject } from '../shared/json.ts';
import { isUriReference } from '../shared/uri.ts';
import { type CredentialConfigurationBody, effectiveCredential, proofTypesOf } from './configuration.ts';
import { staticElements } from './mdoc-claims.ts';
import { SPREAD_LIFETIME_SECONDS } from './reuse-policy.ts';

const MDL = 'org.iso.18013.5.1.mDL';
/** ISO/IEC 18013-5 section 7.2.1, table 5: mandatory elements of a driving licence. */
const MDL_ELEMENTS = [
  'family_name',
  'given_name',
  'birth_date',
  'issue_date',
  'expiry_date',
  'issuing_country',
  'issuing_authority',
  'document_number',
  'portrait',
  'driving_privileges',
  'un_distinguishing_sign',
];

/**
 * Warnings about a configuration whose credentials wallets, verifiers or a law reject.
 * @param profile of the tenant; it decides properties that the configuration leaves open.
 */
export function findCredentialProblems(storedConfiguration: CredentialConfigurationBody, profile: Profile | null): Finding[] {
  const configuration = effectiveCredential(storedConfiguration, profile);
  const isMdoc = configuration.config.format === 'mso_mdoc';
  return [
    ...findBindingProblems(configuration),
    ...findReuseProblems(configuration),
    ...findActiveSetProblems(configuration),
    ...findFollowingProblems(configuration),
    ...findDisplayProblems(configuration),
    ...findValidityProblems(configuration),
    ...findNameProblems(configuration),
    ...(isMdoc ? findLicenceProblems(configuration) : findDisclosureProblems(configuration)),
  ];
}

/** Names are stored as written; release 0.1.0 accepted any text. */
function findNameProblems({ vct }: CredentialConfigurationBody): Finding[] {
  const names = isJsonObject(vct) ? { 'vct.vct': vct['vct'], 'vct.extends': vct['extends'] } : { vct };
  return Object.entries(names).flatMap(([member, name]) =>
    typeof name !== 'string' || isUriReference(name)
      ? []
      : [
          {
            rule: 'RFC 3986 section 4.1',
            member,
            concerns: 'wallets whose libraries parse names of types as URIs',
            message: 'the name contains characters that are not allowed in a URI, and such wallets reject all credentials of the tenant',
            change: 'use a name such as urn:example:student:1',
          },
        ],
  );
}

function findBindingProblems(configuration: CredentialConfigurationBody): Finding[] {
  const { keyBinding, keyAttestationsRequired } = configuration;
  if (!keyBinding) {
    return [
      {
        rule: 'RFC 9901 section 9.5',
        member: 'keyBinding',
        concerns: 'verifiers, and holders whose credential is copied',
        message: 'anyone with a copy of the credential can present it, and most verifiers reject it',
        change: 'leave it true unless the credential is a ticket for its bearer',
      },
    ];
  }
  if (keyAttestationsRequired === null || keyAttestationsRequired === undefined) {
    return [
      {
        profileRule: 'HAIP 1.0 section 4.5.1, EUDI TS3 1.5 section 2.2',
        member: 'keyAttestationsRequired',
        concerns: 'wallets with the library of the European reference wallet in its HAIP mode',
        message:
          'wallets with that library cannot read the metadata of an issuer that has a key-bound configuration without keyAttestationsRequired',
        change: 'set it to {} or to what keys need, and name lists of wallet providers in walletProviderTrustLists',
      },
    ];
  }
  const missingType = (['jwt', 'attestation'] as const).find((type) => !proofTypesOf(configuration).includes(type));
  if (missingType === undefined) return [];
  return [
    {
      profileRule: 'HAIP 1.0 section 4.5.1, EUDI TS3 1.5 section 2.2',
      member: 'proofTypes',
      concerns: `wallets that prove their keys only by ${missingType}`,
      message: `wallets that prove their keys only by ${missingType} cannot get the credential`,
      change: 'leave it out: then both types are accepted',
      refusedBy: ['eu'],
    },
  ];
}

function findReuseProblems({ keyBinding, credentialReusePolicy }: CredentialConfigurationBody): Finding[] {
  const isGiven = credentialReusePolicy !== null && credentialReusePolicy !== undefined;
  if (isGiven || !keyBinding) return [];
  return [
    {
      profileRule: 'ARF 3.0 ISSU_39 and ISSU_40, ETSI TS 119 472-3 section 4.2.4.2',
      member: 'credentialReusePolicy',
      concerns: 'holders, whose wallets may present one copy to every verifier, so that verifiers can link the presentations',
      message: 'the metadata do not say how often a copy is presented',
      change: 'choose once_only with batches, or limited_time with a short lifeTime',
      refusedBy: ['eu'],
    },
  ];
}

function findActiveSetProblems({ oneActiveSet }: CredentialConfigurationBody): Finding[] {
  if (oneActiveSet !== true) return [];
  return [
    {
      rule: 'OpenID4VCI 1.0 section 3.3.2',
      member: 'oneActiveSet',
      concerns: 'holders whose wallets use one offer of the authorization code flow together',
      message: 'the last wallet that fetches its credentials revokes those of the others permanently',
      change: 'create one offer for each holder, and show it only to that holder',
    },
  ];
}

/** The status of shorter-lived credentials is checked at issuance, which is enough (TS3 1.5 section 2.4.3). */
const SHORT_LIVED_SECONDS = 86_400;

function findFollowingProblems(configuration: CredentialConfigurationBody): Finding[] {
  const { statusManagement, keyAttestationsRequired, followWalletStatus, lifeTime } = configuration;
  const isAttested = keyAttestationsRequired !== null && keyAttestationsRequired !== undefined;
  const isShort = (lifeTime ?? 0) < SHORT_LIVED_SECONDS;
  if (statusManagement || isShort || !isAttested || followWalletStatus === false) return [];
  return [
    {
      profileRule: 'EUDI TS3 1.5 section 2.4.3',
      member: 'statusManagement',
      concerns: 'providers of personal identification data, who have to revoke it with its wallet',
      message: 'the credential expires with the status period of the wallet provider, and is not revoked with the wallet',
      change: 'set it to true, or followWalletStatus to false',
    },
  ];
}

function findDisplayProblems({ config }: CredentialConfigurationBody): Finding[] {
  if (config.display !== undefined && config.display.length > 0) {
    return config.display.flatMap(({ background_color: background, text_color: text }, index) =>
      findContrastProblems(`config.display.${index}.text_color`, { background, text }),
    );
  }
  return [
    {
      rule: 'OpenID4VCI 1.0 section 12.2.4',
      member: 'config.display',
      concerns: 'users, whose wallets have no name for the credential',
      message: 'the metadata have no display, so most wallets show the id of the configuration',
      change: 'give it a name in each language of its holders',
    },
  ];
}

function findValidityProblems({ config, lifeTime, statusManagement }: CredentialConfigurationBody): Finding[] {
  if (typeof lifeTime === 'number' && lifeTime < SPREAD_LIFETIME_SECONDS) {
    return [
      {
        rule: 'RFC 9901 section 10.1',
        member: 'lifeTime',
        concerns: 'holders, whose copies verifiers can link by their expiry',
        message: 'the expiry times of copies that are issued together may lie within two minutes',
        change: `set it to ${SPREAD_LIFETIME_SECONDS} seconds or more`,
      },
    ];
  }
  if (statusManagement || config.format === 'mso_mdoc' || (lifeTime !== null && lifeTime !== undefined)) return [];
  return [
    {
      rule: 'Regulation (EU) No 910/2014 article 5a',
      profileRule: 'HAIP 1.0 section 6.1',
      member: 'statusManagement',
      concerns: 'verifiers, which cannot find out that the credential is no longer valid',
      message: 'a credential that never expires and cannot be revoked',
      change: 'set lifeTime, statusManagement or both',
    },
  ];
}

function findDisclosureProblems({ disclosureFrame, config, vct }: CredentialConfigurationBody): Finding[] {
  const findings: Finding[] = [];
  if (disclosureFrame === null || disclosureFrame === undefined) {
    findings.push({
      rule: 'Regulation (EU) No 910/2014 article 5a, paragraph 4',
      member: 'disclosureFrame',
      concerns: 'holders, who cannot withhold anything, and data protection authorities',
      message: 'every claim is disclosed in every presentation',
      change: 'list in _sd the claims that holders may withhold',
    });
  }
  const isHosted = vct === null || vct === undefined || (isJsonObject(vct) && vct['vct'] === undefined);
  const indexWithoutLocale = (config.display ?? []).findIndex(({ locale }) => locale === undefined);
  if (isHosted && indexWithoutLocale >= 0) {
    findings.push({
      rule: 'SD-JWT VC section 5.5',
      member: `config.display.${indexWithoutLocale}.locale`,
      concerns: 'wallets that show the credential by its type metadata',
      message: 'a display without a language is left out of the hosted type metadata',
      change: 'set a locale, such as en',
    });
  }
  return findings;
}

/** Before issuance, only the static elements of the configuration can be checked. */
function findLicenceProblems({ config, claims }: CredentialConfigurationBody): Finding[] {
  const elementsOfConfiguration = claims ?? staticElements(config);
  if (config.docType !== MDL || !isJsonObject(elementsOfConfiguration)) return [];
  const namespace = elementsOfConfiguration['org.iso.18013.5.1'];
  const elements = isJsonObject(namespace) ? namespace : elementsOfConfiguration;
  const missingElements = MDL_ELEMENTS.filter((name) => elements[name] === undefined);
  if (missingElements.length === 0) return [];
  return [
    {
      rule: 'ISO/IEC 18013-5 section 7.2.1',
      member: claims === undefined || claims === null ? 'config.claimsByNamespace' : 'claims',
      concerns: 'readers of driving licences',
      message: `a licence needs ${missingElements.join(', ')}`,
      change: 'add them, unless offers or the claims webhook provide all claims',
    },
  ];
}
