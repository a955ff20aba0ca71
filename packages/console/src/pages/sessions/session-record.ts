type Members = Readonly<Record<string, unknown>>;

/** One check of what was presented. */
export type Check = {
  readonly id?: string;
  readonly index?: number;
  readonly check: string;
  readonly result: 'passed' | 'failed';
  readonly input?: string;
  readonly reason?: string;
  readonly detail?: string;
  readonly section: string;
};

export type DeliveryRecord = {
  readonly id: string;
  readonly webhook: string;
  readonly at: string;
  readonly result: 'pending' | 'delivered' | 'failed';
  readonly detail?: string;
  readonly status?: number;
  readonly durationMs?: number;
};

/** A session as the interface answers it. */
export type SessionRecord = {
  readonly id: string;
  readonly status: 'active' | 'fetched' | 'completed' | 'expired' | 'failed';
  readonly kind: 'issuance' | 'verification';
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string;
  readonly useDcApi: boolean;
  readonly authorizedAt?: string;
  readonly tokenAt?: string;
  readonly walletAuthentication?: 'attestation' | 'key' | 'none';
  readonly configurationIds: readonly string[];
  readonly reference?: string;
  readonly offer?: Members;
  readonly offerUrl?: string;
  readonly requestUrl?: string;
  readonly requestObject?: string;
  readonly isoMdocRequest?: { readonly deviceRequest: string; readonly encryptionInfo: string };
  readonly clientId?: string;
  readonly credentialPayload?: Members;
  readonly credentials?: readonly Members[];
  readonly auth_queries?: Members;
  readonly transaction_data?: readonly Members[];
  readonly notifications: readonly (Members & { readonly at: string; readonly event: string })[];
  readonly attempts?: readonly { readonly at: string; readonly code: string; readonly reason: string }[];
  readonly deliveries?: readonly DeliveryRecord[];
  readonly report?: readonly Check[];
  readonly failure?: { readonly code: string; readonly message: string };
  readonly redirectUri?: string | null;
};

export const isOpen = ({ status }: Pick<SessionRecord, 'status'>) => status === 'active' || status === 'fetched';
