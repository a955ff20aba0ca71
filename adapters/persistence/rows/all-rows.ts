import {
  ClientMacMarkerRow,
  ClientRow,
  documentRows,
  RecordedKeyRow,
  RemovedClientRow,
  RetiredKeyRow,
  TenantRow,
} from './administration.row.ts';
import { AuditEntryRow, AuditHeadRow } from './audit.row.ts';
import { AuthorizationRow, DeferredRow, SessionSubjectRow } from './authorization.row.ts';
import {
  EventCursorRow,
  GrantRow,
  IssuedBatchRow,
  KeptAnswerRow,
  OpenSessionBytesRow,
  PendingDeliveryRow,
  SessionEventRow,
  SessionRow,
  UsedValueRow,
} from './session.row.ts';
import { LeaseRow, SealingKeyRow, StatusEntryRow, StatusListRow } from './status.row.ts';
import { IssuedSubjectRow, RevokedSubjectRow, SubjectKeyRow, SubjectRevocationRow } from './subject.row.ts';
import { TermRow } from './term.row.ts';
import { KeptTrustListRow, SeenReleaseRow, TrustListRow, TrustListVersionRow } from './trust-list.row.ts';
import { FallenBatchRow, FollowedListRow, FollowedStatusRow } from './wallet-status.row.ts';

export const allRows = [
  TenantRow,
  ClientRow,
  ...documentRows.values(),
  SessionRow,
  GrantRow,
  KeptAnswerRow,
  PendingDeliveryRow,
  OpenSessionBytesRow,
  AuthorizationRow,
  DeferredRow,
  SessionSubjectRow,
  UsedValueRow,
  SessionEventRow,
  EventCursorRow,
  IssuedBatchRow,
  SubjectKeyRow,
  IssuedSubjectRow,
  SubjectRevocationRow,
  RevokedSubjectRow,
  StatusListRow,
  StatusEntryRow,
  FollowedListRow,
  FollowedStatusRow,
  FallenBatchRow,
  LeaseRow,
  SealingKeyRow,
  TrustListRow,
  TrustListVersionRow,
  SeenReleaseRow,
  KeptTrustListRow,
  AuditEntryRow,
  AuditHeadRow,
  RemovedClientRow,
  RetiredKeyRow,
  RecordedKeyRow,
  ClientMacMarkerRow,
  TermRow,
];
