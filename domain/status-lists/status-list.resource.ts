import { resource } from '../shared/resource.ts';
import type { StatusList } from './status-list.ts';

export const statusListResource = resource<StatusList>()({
  kind: 'status-list',
  repository: 'statusLists',
  auditedValues: ['keyChainId', 'bits', 'capacity', 'ttlSeconds', 'immediateUpdate', 'enableAggregation'],
  editablePart: ({ id, credentialConfigurationId, keyChainId }: StatusList) => [id, credentialConfigurationId, keyChainId],
  volatileProperties: ['usedEntries', 'availableEntries', 'expiresAt'],
});
