import type { Profile } from '../shared/finding.ts';
import { findOlderRuleProblems } from '../shared/merge-change.ts';
import { resource } from '../shared/resource.ts';
import { webhookKey } from '../webhooks/webhook.ts';
import { type CredentialConfiguration, CredentialConfigurationBody } from './configuration.ts';
import { findCredentialProblems } from './credential-findings.ts';

export const credentialConfigurationResource = resource<CredentialConfiguration>()({
  kind: 'credential-configuration',
  repository: 'credentialConfigurations',
  revision: 'credentials',
  isDocument: true,
  auditedValues: ['keyChainId', 'keyBinding', 'statusManagement', 'lifeTime'],
  volatileProperties: ['keyChain', 'cert'],
  editablePart: (configuration: CredentialConfiguration) => configuration,
  findings: (configuration: CredentialConfiguration, profile: Profile | null) => [
    ...findCredentialProblems(configuration, profile),
    ...findOlderRuleProblems(CredentialConfigurationBody, configuration),
  ],
  secrets: { ...webhookKey('claimsWebhook', 'CLAIMS_WEBHOOK_KEY'), ...webhookKey('notificationWebhook', 'NOTIFICATION_WEBHOOK_KEY') },
  file: {
    path: 'issuance/credentials/*',
    id: 'id',
    body: CredentialConfigurationBody,
    refersTo: ['key-chain', 'presentation-configuration'],
    write: ({ frozenType: _frozenType, ...configuration }: CredentialConfiguration) => configuration,
  },
});
