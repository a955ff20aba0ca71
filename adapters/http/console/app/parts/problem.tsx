import { ApiFailure } from '../api/call.ts';

/** What went wrong, in the words of the service, and what names it in the log. */
export function Problem({ fault }: { readonly fault: unknown }) {
  const message = fault instanceof Error ? fault.message : String(fault);
  return (
    <div role="alert" class="problem">
      <p>{message}</p>
      {fault instanceof ApiFailure && (
        <>
          {fault.errors.length > 0 && (
            <ul>
              {fault.errors.map(({ path, message: what }) => (
                <li key={`${path} ${what}`}>
                  <code>{path}</code> {what}
                </li>
              ))}
            </ul>
          )}
          <p class="fine">
            {fault.status} {fault.code}
            {fault.requestId !== '' && (
              <>
                {' · request '}
                <code>{fault.requestId}</code>
              </>
            )}
          </p>
        </>
      )}
    </div>
  );
}
