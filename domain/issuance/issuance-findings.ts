import { findContrastProblems } from '../shared/contrast.ts';
import { type Finding, includesProfile, type Profile } from '../shared/finding.ts';
import { defaultIssuance, type IssuanceConfiguration, type IssuanceConfigurationBody, withDefaults } from './issuance-configuration.ts';

const HAIP_WALLETS = 'wallets that follow HAIP 1.0, such as the European Digital Identity Wallet';
const BY_HAIP = { concerns: HAIP_WALLETS, refusedBy: ['haip'] } as const;

/**
 * Warnings about issuance settings that wallets reject.
 * @param profile of the tenant; it decides settings that the configuration leaves open.
 */
export function findIssuanceProblems(issuance: IssuanceConfigurationBody, profile: Profile | null): Finding[] {
  return [
    ...findClientProblems(issuance, profile),
    ...findChallengeProblems(issuance),
    ...findTokenProblems(issuance, profile),
    ...findServerProblems(issuance),
    ...findEuropeanProblems(issuance, profile),
    ...findPageProblems(issuance),
  ];
}

/** Warnings for a tenant that sets a profile without any other change: the profile changes which wallets its issuer accepts. */
export function findProfileProblems(profile: Profile | null, storedConfiguration: IssuanceConfiguration | undefined): Finding[] {
  if (profile === null) return [];
  const issuance = storedConfiguration === undefined ? defaultIssuance('-') : withDefaults(storedConfiguration);
  return findClientProblems(issuance, profile).map((finding) => ({
    ...finding,
    member: 'profile',
    change: `with POST /issuer/config ${finding.change}`,
  }));
}

function findClientProblems(
  { walletAttestationRequired, walletProviderTrustLists, walletClients }: IssuanceConfigurationBody,
  profile: Profile | null,
): Finding[] {
  const member = 'walletAttestationRequired';
  const isOpen = walletAttestationRequired === null || walletAttestationRequired === undefined;
  const isRequired = walletAttestationRequired ?? profile !== null;
  const findings: Finding[] = [];
  if (!isRequired) {
    findings.push({
      ...(isOpen ? { concerns: HAIP_WALLETS } : BY_HAIP),
      profileRule: 'HAIP 1.0 section 4.4.1, FAPI 2.0 section 5.3.2.1',
      member,
      message: 'wallets get tokens without authenticating',
      change: 'set it to true, and name the lists of wallet providers in walletProviderTrustLists',
    });
  }
  if (isRequired && walletProviderTrustLists.length === 0 && walletClients.length === 0) {
    findings.push({
      rule: 'Attestation-based client authentication, section 5.1',
      member: 'walletProviderTrustLists',
      concerns: 'every wallet',
      message: 'a wallet attestation is required, and no wallet provider is trusted, so all wallets are rejected',
      change: includesProfile(profile, 'eu')
        ? 'name lists of wallet providers'
        : 'name lists of wallet providers, or register wallets in walletClients',
    });
  }
  return findings;
}

function findChallengeProblems({ attestationChallenge }: IssuanceConfigurationBody): Finding[] {
  if (attestationChallenge !== 'optional') return [];
  return [
    {
      rule: 'Attestation-based client authentication, section 8',
      profileRule: 'HAIP 1.0 section 4.4.1',
      member: 'attestationChallenge',
      message: 'proofs of possession of wallet attestations are accepted that were signed in advance',
      change: 'set it to required',
      concerns: 'holders whose wallet signed proofs in advance',
      refusedBy: ['haip'],
    },
  ];
}

function findTokenProblems({ dPopRequired, dPopNonce, chainedAs }: IssuanceConfigurationBody, profile: Profile | null): Finding[] {
  const findings: Finding[] = [];
  const bound = {
    rule: 'RFC 9700 section 2.2.1',
    profileRule: 'HAIP 1.0 section 4, FAPI 2.0 section 5.3.2.1',
    concerns: 'holders whose access token is stolen',
    refusedBy: ['haip'],
    message: 'access tokens are not bound to a key of the wallet, so a stolen token can be used',
    change: 'leave it true',
  } as const;
  if (!dPopRequired) findings.push({ ...bound, member: 'dPopRequired' });
  if (chainedAs?.requireDPoP === false) findings.push({ ...bound, member: 'chainedAs.requireDPoP' });
  const isOpen = dPopNonce === null || dPopNonce === undefined;
  if (dPopNonce !== 'required' && !(isOpen && profile !== null)) {
    findings.push({
      ...(isOpen ? { concerns: 'wallets' } : BY_HAIP),
      profileRule: 'HAIP 1.0 section 4, RFC 9449 section 4.3',
      member: 'dPopNonce',
      message: 'proofs of possession are accepted that were signed in advance',
      change: 'set it to required',
      concerns: isOpen ? 'holders whose wallet signed proofs in advance' : HAIP_WALLETS,
    });
  }
  return findings;
}

function findServerProblems({ authServers, chainedAs }: IssuanceConfigurationBody): Finding[] {
  const findings: Finding[] = [];
  if (authServers.length > 0) {
    findings.push({
      profileRule: 'HAIP 1.0 section 4, FAPI 2.0 section 5.3.2',
      member: 'authServers',
      concerns: HAIP_WALLETS,
      message: 'client authentication and pushed requests of wallets are the decision of these servers',
      change: 'configure these servers to require client authentication, PAR, PKCE and DPoP',
    });
  }
  if (chainedAs?.confirmUnverifiedWallets === false) {
    findings.push({
      rule: 'RFC 9700 section 4.11',
      member: 'chainedAs.confirmUnverifiedWallets',
      concerns: 'users who follow a link of an attacker',
      message: 'a logged-in user is not asked for consent before the credential goes to an unknown wallet',
      change: 'leave it true',
    });
  }
  return findings;
}

const EU_WALLETS = 'the European Digital Identity Wallet';

function findEuropeanProblems(
  { algorithms, walletClients, registrationCert }: IssuanceConfigurationBody,
  profile: Profile | null,
): Finding[] {
  const findings: Finding[] = [];
  if (algorithms?.includes('EdDSA')) {
    findings.push({
      profileRule: 'ARF 3.0 OIA_03 and WUA_04, ECCG Agreed Cryptographic Mechanisms 2',
      member: 'algorithms',
      concerns: `${EU_WALLETS} and supervisory authorities of its issuers`,
      message: 'signatures by EdDSA are accepted, which is not an agreed algorithm',
      change: 'remove EdDSA',
      refusedBy: ['eu'],
    });
  }
  if (!registrationCert && includesProfile(profile, 'eu')) {
    findings.push({
      profileRule: 'ARF 3.0 RPRC_22, ETSI TS 119 472-3 section 4.2.3',
      member: 'registrationCert',
      concerns: EU_WALLETS,
      message: 'the metadata do not contain the registration of the issuer, and wallets request nothing from it',
      change: 'let the registrar issue it with {"body": {}}, or send it as {"jwt": …}',
      refusedBy: ['eu'],
    });
  }
  if (walletClients.length > 0 && includesProfile(profile, 'eu')) {
    findings.push({
      profileRule: 'ARF 3.0 ISSU_21 and ISSU_30a, EUDI TS3 1.5 section 2.3',
      member: 'walletClients',
      concerns: EU_WALLETS,
      message: 'registered wallets get credentials without an attestation of their provider',
      change: 'name lists of wallet providers in walletProviderTrustLists instead',
      refusedBy: ['eu'],
    });
  }
  return findings;
}

function findPageProblems({ pages }: IssuanceConfigurationBody): Finding[] {
  return findContrastProblems('pages.textColor', { background: pages?.backgroundColor, text: pages?.textColor });
}
