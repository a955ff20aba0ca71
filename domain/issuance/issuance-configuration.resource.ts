import { fingerprintsOf } from '../formats/der/fingerprints.ts';
import { resource } from '../shared/resource.ts';
import { type IssuanceConfiguration, IssuanceConfigurationBody, withDefaults } from './issuance-configuration.ts';
import { findIssuanceProblems } from './issuance-findings.ts';

export const issuanceConfigurationResource = resource<IssuanceConfiguration>()({
  kind: 'issuance-configuration',
  repository: 'issuanceConfiguration',
  revision: 'issuance',
  isDocument: true,
  auditedValues: [
    'signingKeyId',
    'batchSize',
    'dPopRequired',
    'dPopNonce',
    'walletAttestationRequired',
    'attestationChallenge',
    'refreshTokenSeconds',
    'requestEncryption',
    'responseEncryption',
  ],
  auditedAs: { walletProviderTrustListCertificates: fingerprintsOf },
  editablePart: withDefaults,
  findings: findIssuanceProblems,
  secrets: {
    'chainedAs.upstream.clientSecret': {
      variable: 'CLIENT_SECRET',
      sentTo: ['chainedAs.upstream.issuer', 'chainedAs.upstream.clientId'],
      hint: 'send the secret: the server or the client changed',
    },
  },
  file: { path: 'issuance/config', body: IssuanceConfigurationBody, refersTo: ['key-chain', 'trust-list'], write: withDefaults },
});
