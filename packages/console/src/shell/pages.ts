import type { ComponentType } from 'preact';
import type { Identity } from '../api/log-in.ts';
import type { PageProps } from './page-props.ts';
import { isPlaying } from './playing.ts';

export type PageEntry = {
  readonly name: string;
  readonly title: string;
  readonly group: 'Start' | 'Work' | 'Set up' | 'Operate';
  readonly may: (identity: Identity) => boolean;
  readonly load: () => Promise<{ readonly default: ComponentType<PageProps> }>;
};

const ofService = ({ tenantId }: Identity) => tenantId === undefined;
const anyOf =
  (...roles: readonly string[]) =>
  ({ tenantId, roles: held }: Identity) =>
    tenantId !== undefined && roles.some((role) => held.includes(role));
const SESSIONS = ['issuance:offer', 'issuance:manage', 'presentation:request', 'presentation:manage'];

export const PAGES: readonly PageEntry[] = [
  {
    name: 'try',
    title: 'Playground',
    group: 'Start',
    may: (identity) => ofService(identity) || isPlaying.value,
    load: () => import('../pages/playground/playground.tsx'),
  },
  { name: 'phone', title: 'Phone', group: 'Start', may: () => true, load: () => import('../pages/phone/phone-page.tsx') },
  { name: 'tenants', title: 'Tenants', group: 'Set up', may: ofService, load: () => import('../pages/tenants/tenants.tsx') },
  { name: 'sessions', title: 'Sessions', group: 'Work', may: anyOf(...SESSIONS), load: () => import('../pages/sessions/sessions.tsx') },
  {
    name: 'credentials',
    title: 'Credentials',
    group: 'Set up',
    may: anyOf('issuance:manage'),
    load: () => import('../pages/credentials/credentials.tsx'),
  },
  {
    name: 'questions',
    title: 'Questions',
    group: 'Set up',
    may: anyOf('presentation:manage', 'presentation:request', 'presentation:offer'),
    load: () => import('../pages/questions/questions.tsx'),
  },
  { name: 'status', title: 'Status', group: 'Operate', may: anyOf('issuance:manage'), load: () => import('../pages/status/status.tsx') },
  { name: 'health', title: 'Health', group: 'Operate', may: () => true, load: () => import('../pages/health/health.tsx') },
  { name: 'rates', title: 'Rates', group: 'Operate', may: anyOf(...SESSIONS), load: () => import('../pages/rates/rates.tsx') },
  { name: 'webhooks', title: 'Webhooks', group: 'Operate', may: anyOf(...SESSIONS), load: () => import('../pages/webhooks/webhooks.tsx') },
  {
    name: 'trust',
    title: 'Trust',
    group: 'Set up',
    may: anyOf('issuance:manage', 'presentation:manage'),
    load: () => import('../pages/trust/trust.tsx'),
  },
  {
    name: 'calendar',
    title: 'Calendar',
    group: 'Operate',
    may: (identity) => ofService(identity) || anyOf('issuance:manage', 'presentation:manage')(identity),
    load: () => import('../pages/calendar/calendar.tsx'),
  },
  { name: 'clients', title: 'Clients', group: 'Operate', may: anyOf('clients:manage'), load: () => import('../pages/clients/clients.tsx') },
  {
    name: 'audit',
    title: 'Audit log',
    group: 'Operate',
    may: (identity) => ofService(identity) || anyOf('clients:manage')(identity),
    load: () => import('../pages/audit/audit.tsx'),
  },
  { name: 'settings', title: 'Settings', group: 'Operate', may: ofService, load: () => import('../pages/settings/settings.tsx') },
  { name: 'decode', title: 'Decoder', group: 'Work', may: () => true, load: () => import('../pages/decoder/decoder.tsx') },
];
