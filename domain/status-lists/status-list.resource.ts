import { resource } from '../shared/resource.ts';
import type { StatusList } from './status-list.ts';

export const statusListResource = resource<StatusList>()({
  kind: 'status-list',
  repository: 'statusLists',
  shown: ['keyChainId', 'bits', 'capacity', 'ttlSeconds', 'immediateUpdate', 'enableAggregation'],
  edited: ({ id, credentialConfigurationId, keyChainId }: StatusList) => [id, credentialConfigurationId, keyChainId],
  changing: ['usedEntries', 'availableEntries', 'expiresAt'],
});
