import * as k8s from '@kubernetes/client-node';

// discover prints every resource, by one request for each group version: the client does not know
// aggregated discovery.
export async function discover(config) {
  const groups = await config.makeApiClient(k8s.ApisApi).getAPIVersions();
  const client = config.makeApiClient(k8s.CustomObjectsApi);
  for (const group of groups.groups) {
    for (const { version } of group.versions) {
      const list = await client.getAPIResources({ group: group.name, version });
      for (const resource of list.resources) {
        console.log(`${group.name}/${version} ${resource.name}`);
      }
    }
  }
}
