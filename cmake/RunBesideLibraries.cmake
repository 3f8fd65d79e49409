# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=<file> -P RunBesideLibraries.cmake
#
# Makes a program that was not installed look for libraries in the folder lib beside its own one, and
# no longer in the build tree.
file(RPATH_SET FILE "${PROGRAM}" NEW_RPATH "$ORIGIN/../lib")
