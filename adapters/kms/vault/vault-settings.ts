/** Authentication of the service at Vault. */
export type VaultAuth =
  | { readonly method: 'token'; readonly token: string }
  | { readonly method: 'approle'; readonly mount: string; readonly roleId: string; readonly secretId: string }
  | { readonly method: 'kubernetes'; readonly mount: string; readonly role: string; readonly tokenFile: string };

/** Vault or OpenBao as configured. */
export type VaultSettings = {
  /** `https://host:port`, also with a path. */
  readonly address: string;
  /** Mount path of the Transit engine. */
  readonly mount: string;
  readonly namespace?: string | undefined;
  readonly auth: VaultAuth;
  /** File with the authorities (PEM) of its certificate; by default those that Node trusts. */
  readonly ca?: string | undefined;
  /** Number of concurrent calls. */
  readonly atOnce: number;
  /** Timeout of one call, including waiting. */
  readonly timeoutSeconds: number;
};

/** Encodes each segment of a mount path, without empty ones. */
export function mountPath(mount: string): string {
  return mount.split('/').filter(Boolean).map(encodeURIComponent).join('/');
}
