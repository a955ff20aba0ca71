import {
  ClientRow,
  CredentialConfigurationRow,
  IssuanceConfigurationRow,
  KeyChainRow,
  PresentationConfigurationRow,
  TenantRow,
} from './administration.row.ts';
import { GrantRow, IssuedBatchRow, SessionEventRow, SessionRow, UsedValueRow } from './session.row.ts';
import { LeaseRow, StatusEntryRow, StatusListRow } from './status.row.ts';

/** Every table of the service. */
export const allRows = [
  TenantRow,
  ClientRow,
  IssuanceConfigurationRow,
  CredentialConfigurationRow,
  PresentationConfigurationRow,
  KeyChainRow,
  SessionRow,
  GrantRow,
  UsedValueRow,
  SessionEventRow,
  IssuedBatchRow,
  StatusListRow,
  StatusEntryRow,
  LeaseRow,
];
