import type { Profile } from '../shared/finding.ts';
import { findOlderRuleProblems } from '../shared/merge-change.ts';
import { resource } from '../shared/resource.ts';
import { webhookKey } from '../webhooks/webhook.ts';
import { type PresentationConfiguration, PresentationConfigurationBody } from './configuration.ts';
import { findPresentationProblems } from './presentation-findings.ts';
import { summarizeAnchors } from './trust-anchor.ts';

export const presentationConfigurationResource = resource<PresentationConfiguration>()({
  kind: 'presentation-configuration',
  repository: 'presentationConfigurations',
  revision: 'presentations',
  isDocument: true,
  auditedValues: ['accessKeyChainId', 'lifeTime'],
  auditedAs: { trustAnchors: summarizeAnchors },
  editablePart: (configuration: PresentationConfiguration) => configuration,
  findings: (configuration: PresentationConfiguration, profile: Profile | null) => [
    ...findPresentationProblems(configuration, profile),
    ...findOlderRuleProblems(PresentationConfigurationBody, configuration),
  ],
  secrets: webhookKey('webhook', 'WEBHOOK_KEY', 'Send the API key again when the address or the header changes.'),
  file: {
    path: 'presentation/*',
    id: 'id',
    body: PresentationConfigurationBody,
    refersTo: ['key-chain', 'registrar-configuration'],
    write: (configuration: PresentationConfiguration) => configuration,
  },
});
